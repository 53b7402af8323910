"""Swish on one group of rows after another, put together with torch.stack.

Style: chunks joined
Task: swish
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=inside)


def swish(x: torch.Tensor) -> torch.Tensor:
    y = x.new_empty(x.shape)
    swish_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
    return y


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        groups = 8 if rows % 8 == 0 else 1
        parts = x.view(groups, rows // groups, columns).unbind(0)
        return torch.stack([swish(part) for part in parts]).reshape(rows, columns)
