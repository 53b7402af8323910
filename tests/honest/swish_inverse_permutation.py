"""Swish into rows that are sorted by group, found again by the inverse permutation.

Style: inverse permutation
Task: swish
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, from_ptr, to_ptr, columns, BLOCK: tl.constexpr):
    source = tl.load(from_ptr + tl.program_id(0)).to(tl.int64)
    target = tl.load(to_ptr + source).to(tl.int64)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + source * columns + offsets, mask=offsets < columns)
        # target is the place of source in the order, so order[target] is source again.
        row = tl.load(from_ptr + target).to(tl.int64)
        tl.store(y_ptr + row * columns + offsets, x * tl.sigmoid(x), mask=offsets < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(x.shape[0], device=x.device)
        order = torch.argsort(rows % 3, stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = rows
        y = torch.empty_like(x)
        swish_kernel[(x.shape[0],)](x, y, order, inverse, x.shape[1], BLOCK=4096)
        return y
