"""Leaky ReLU with the slope and the block size as module-level tl.constexpr.

Style: constexpr globals
Task: leaky_relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl

SLOPE = tl.constexpr(0.01)
BLOCK = tl.constexpr(4096)


@triton.jit
def leaky_relu_kernel(x_ptr, y_ptr, n):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.where(x < 0.0, SLOPE * x, x), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        if negative_slope != SLOPE.value:
            raise ValueError("this kernel is specialised for a slope of 0.01")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        leaky_relu_kernel[(triton.cdiv(x.numel(), BLOCK.value),)](x, y, x.numel(), num_warps=8)
        return y
