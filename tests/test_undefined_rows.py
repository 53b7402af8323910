"""A reference that is undefined on some hidden inputs holds nobody to what it gives there."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest

pytestmark = pytest.mark.usefixtures("warm_evaluator")

TASK = '''"""Rows divided by their norm, float32."""

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {"only": {"official": {"n": 4096, "m": 8192}, "small": {"n": 32, "m": 65}}},
    "domains": ["any"],
    "tolerance": {"reduction_length": 8192},
    "flops_per_element": 2,
}


class Model(nn.Module):
    """``x / |x|``, undefined on a row of zeros."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.linalg.vector_norm(x, dim=1, keepdim=True)


n = 4096
m = 8192


def get_inputs():
    return [torch.randn(n, m)]


def get_init_inputs():
    return []
'''
GUARDED = """
import torch
import triton
import triton.language as tl


@triton.jit
def normalise_kernel(x_ptr, y_ptr, m, block: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, block)
    inside = columns < m
    x = tl.load(x_ptr + row * m + columns, mask=inside, other=0.0)
    norm = tl.maximum(tl.sqrt(tl.sum(x * x, 0)), 1e-12)
    tl.store(y_ptr + row * m + columns, x / norm, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        normalise_kernel[(x.shape[0],)](x, y, x.shape[1], block=triton.next_power_of_2(x.shape[1]))
        return y
"""


def test_a_guard_against_division_by_zero_is_not_refused(tmp_path: Path) -> None:
    task = tmp_path / "normalise.py"
    task.write_text(TASK)
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks=str(task), device="cpu")
    try:
        for source in (GUARDED, GUARDED.replace("tl.maximum(", "(").replace(", 1e-12)", ")")):
            env.reset()
            feedback, _, _, _, info = env.step(source)
            assert info["status"] == "correct", feedback
    finally:
        env.close()
