"""GELU without masks at the official 8192 x 8192, and a tail kernel for what whole blocks leave over.

Style: hard-coded sizes
Task: mingpt_gelu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl

OFFICIAL = 8192 * 8192


@triton.jit
def gelu(x):
    v = 1.5957691216057308 * (x + 0.044715 * x * x * x)
    e = tl.exp(-tl.abs(v))
    return x * tl.where(v < 0.0, e, 1.0) / (1.0 + e)


@triton.jit
def whole_blocks(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, gelu(tl.load(x_ptr + offsets)))


@triton.jit
def tail(x_ptr, y_ptr, first, n, BLOCK: tl.constexpr):
    offsets = first + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, gelu(x), mask=offsets < n)


class ModelNew(torch.nn.Module):
    block = 2048

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        n = x.numel()
        whole = n // self.block
        if whole:
            whole_blocks[(whole,)](x, y, BLOCK=self.block, num_warps=8)
        if n != OFFICIAL and n % self.block:
            tail[(1,)](x, y, whole * self.block, n, BLOCK=self.block)
        return y
