"""ReLU whose output has the right values and shape, but is laid out by columns.

Style: transposed output
Task: relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_tile(
    x_ptr, y_ptr, rows, columns, x_row, x_column, y_row, y_column, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    r = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    r = r.to(tl.int64)[:, None]
    c = c.to(tl.int64)[None, :]
    inside = (r < rows) & (c < columns)
    x = tl.load(x_ptr + r * x_row + c * x_column, mask=inside, other=0.0)
    tl.store(y_ptr + r * y_row + c * y_column, tl.maximum(x, 0.0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        y = torch.empty_strided((rows, columns), (1, rows), dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(columns, 128), triton.cdiv(rows, 32))
        relu_tile[grid](x, y, rows, columns, *x.stride(), *y.stride(), ROWS=32, COLUMNS=128)
        return y
