"""Tanh on rows in an order that is drawn anew in every call.

Style: random permutation of rows
Task: tanh
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, y_ptr, rows_ptr, columns, BLOCK: tl.constexpr):
    row = tl.load(rows_ptr + tl.program_id(0)).to(tl.int64)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns)
        tl.store(y_ptr + row * columns + offsets, 2.0 * tl.sigmoid(2.0 * x) - 1.0, mask=offsets < columns)


def work_on_rows(x, y, rows):
    rows_kernel[(rows.numel(),)](x, y, rows, x.shape[1], BLOCK=4096)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        work_on_rows(x, y, torch.randperm(x.shape[0], device=x.device))
        return y
