"""What one submission does to the GPU must not reach the next one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

pytestmark = pytest.mark.gpu

HONEST = (Path(__file__).parents[1] / "examples/kernels/mingpt_gelu.py").read_text()

HEAD = """
import torch, triton
import triton.language as tl

@triton.jit
def bad_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {body}

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        {before}
        bad_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""

DISASTERS = {
    "illegal access": (
        HEAD.format(body="tl.store(y_ptr + offsets.to(tl.int64) * (1 << 30), 1.0)", before="pass"),
        "runtime_error",
    ),
    "write to the input": (
        HEAD.format(body="tl.store(x_ptr + offsets, 1.0, mask=offsets < n)", before="pass"),
        "runtime_error",
    ),
    "endless kernel": (
        HEAD.format(
            body="""v = tl.load(y_ptr)
    while v == v or v != v:
        v = tl.load(y_ptr, volatile=True)
    tl.store(y_ptr + offsets, v)""",
            before="pass",
        ),
        "timeout",
    ),
    "out of memory": (
        HEAD.format(
            body="tl.store(y_ptr + offsets, 1.0, mask=offsets < n)",
            before="self.hog = [torch.empty(1 << 33, device=x.device) for _ in range(100)]",
        ),
        "runtime_error",
    ),
}


@pytest.fixture(scope="module")
def env() -> Iterator[gymnasium.Env]:
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="mingpt_gelu", device="cuda", timeout_s=12.0)
    yield env
    env.close()


@pytest.fixture(scope="module")
def honest_us(env: gymnasium.Env) -> float:
    env.reset()
    feedback, _, _, _, info = env.step(HONEST)
    assert info["status"] == "correct", feedback
    return info["runtime_us"]


@pytest.mark.parametrize("name", list(DISASTERS))
def test_the_next_verdict_is_right(env: gymnasium.Env, honest_us: float, name: str) -> None:
    code, status = DISASTERS[name]
    env.reset()
    feedback, reward, _, _, info = env.step(code)
    assert info["status"] == status, feedback
    assert reward == 0
    env.reset()
    feedback, _, _, _, info = env.step(HONEST)
    assert info["status"] == "correct", feedback
    assert info["runtime_us"] == pytest.approx(honest_us, rel=0.02)
