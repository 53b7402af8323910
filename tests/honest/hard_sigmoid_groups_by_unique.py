"""HardSigmoid on groups of rows, whose bounds torch.unique and a running sum give.

Style: torch.unique on group numbers
Task: hard_sigmoid
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def hard_sigmoid_kernel(x_ptr, y_ptr, bounds_ptr, columns, BLOCK: tl.constexpr):
    group = tl.program_id(0)
    first = tl.load(bounds_ptr + group) * columns
    last = tl.load(bounds_ptr + group + 1) * columns
    for start in range(first, last, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < last)
        tl.store(y_ptr + offsets, tl.minimum(tl.maximum(x / 6.0 + 0.5, 0.0), 1.0), mask=offsets < last)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        groups, sizes = torch.unique(torch.arange(x.shape[0], device=x.device) // 4, return_counts=True)
        bounds = torch.zeros(groups.numel() + 1, dtype=torch.int64, device=x.device)
        bounds[1:] = torch.cumsum(sizes, 0)
        y = torch.empty_like(x)
        hard_sigmoid_kernel[(groups.numel(),)](x, y, bounds, x.shape[1], BLOCK=8192)
        return y
