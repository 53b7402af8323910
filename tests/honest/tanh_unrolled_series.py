"""Tanh with an expm1 series, unrolled by tl.static_range, into a zeroed output.

Style: static_range
Task: tanh
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def small_expm1(v):
    """exp(v) - 1 for |v| < 0.7 by Horner's scheme: v (1 + v/2 (1 + v/3 (1 + ...)))."""
    total = tl.full(v.shape, 1.0, tl.float32)
    for i in tl.static_range(9):
        total = 1.0 + total * v * (1.0 / (10 - i))
    return v * total


@triton.jit
def tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    v = -2.0 * tl.abs(x)
    m = tl.where(v > -0.7, small_expm1(v), tl.exp(v) - 1.0)
    # tanh|x| = (1 - exp(-2|x|)) / (1 + exp(-2|x|)) = -m / (2 + m)
    t = -m / (2.0 + m)
    tl.store(y_ptr + offsets, tl.where(x < 0.0, -t, t), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros_like(x)
        tanh_kernel[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), BLOCK=2048, num_warps=8)
        return y
