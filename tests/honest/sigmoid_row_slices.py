"""Sigmoid launched once for every group of rows, into slices of one output.

Style: several launches
Task: sigmoid
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sigmoid_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    e = tl.exp(-tl.abs(x))
    y = tl.where(x < 0.0, e, 1.0) / (1.0 + e)
    tl.store(y_ptr + offsets, y, mask=inside)


class ModelNew(torch.nn.Module):
    groups = 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        step = -(-x.shape[0] // self.groups)
        for first in range(0, x.shape[0], step):
            source, target = x[first : first + step], y[first : first + step]
            n = source.numel()
            sigmoid_kernel[(triton.cdiv(n, 4096),)](source, target, n, BLOCK=4096)
        return y
