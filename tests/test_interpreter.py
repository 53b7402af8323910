"""Honest kernels that Triton's interpreter, as it comes, would get wrong or refuse."""

from __future__ import annotations

import gymnasium
import pytest

from gym_kernel.tasks import Task

pytestmark = pytest.mark.usefixtures("warm_evaluator")

PRODUCT = """
import torch

class Model(torch.nn.Module):
    def forward(self, a, b):
        wide = torch.promote_types(a.dtype, torch.float32)
        return (a.to(wide) @ b.to(wide)).to(a.dtype)

def get_inputs():
    return [torch.randn(32, 64, dtype=torch.{dtype}), torch.randn(64, 16, dtype=torch.{dtype})]

def get_init_inputs():
    return []
"""
KERNEL = """
import torch, triton
import triton.language as tl

{decorators}
@triton.jit
def product_kernel(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, UNROLL: tl.constexpr = 1):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(left, right).to(c.dtype.element_ty))

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
        product_kernel[(1,)](a, b, c, 32, 16, 64)
        return c
"""
AUTOTUNE = "@triton.autotune([triton.Config({'UNROLL': n}) for n in (1, 2)], key=['M'])"


@pytest.mark.parametrize(
    ("dtype", "decorators"), [("float16", ""), ("bfloat16", ""), ("bfloat16", AUTOTUNE)], ids=str
)
def test_half_precision_products_are_right(dtype: str, decorators: str) -> None:
    task = Task(id="product", suite="mine", title="Product", source=PRODUCT.format(dtype=dtype), domains=())
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks=task, device="cpu", timeout_s=30.0)
    try:
        env.reset()
        feedback, _, _, _, info = env.step(KERNEL.format(decorators=decorators))
    finally:
        env.close()
    assert info["status"] == "correct", feedback
