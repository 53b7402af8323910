"""ReLU on the even rows and then on the odd ones, picked by masks on the row numbers.

Style: boolean masks on row numbers
Task: relu
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
        tl.store(y_ptr + row * columns + offsets, tl.maximum(x, 0.0), mask=offsets < columns)


def work_on_rows(x, y, rows):
    rows_kernel[(rows.numel(),)](x, y, rows, x.shape[1], BLOCK=4096)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        rows = torch.arange(x.shape[0], device=x.device)
        even = rows % 2 == 0
        work_on_rows(x, y, rows[even])
        work_on_rows(x, y, rows[~even])
        return y
