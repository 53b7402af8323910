"""Sigmoid with helper functions that are jitted themselves.

Style: device functions
Task: sigmoid
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def decay(x):
    """exp(-|x|), which never overflows."""
    return tl.exp(-tl.abs(x))


@triton.jit
def stable_sigmoid(x):
    e = decay(x)
    return tl.where(x >= 0.0, 1.0, e) / (1.0 + e)


@triton.jit
def positions(n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    return offsets, offsets < n


@triton.jit
def sigmoid_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets, inside = positions(n, BLOCK)
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, stable_sigmoid(x), mask=inside)


class ModelNew(torch.nn.Module):
    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        sigmoid_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        return y
