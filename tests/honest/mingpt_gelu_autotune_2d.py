"""GELU on tiles whose two sides are autotuned for each shape.

Style: autotune
Task: mingpt_gelu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"ROWS": rows, "COLUMNS": columns}, num_warps=warps)
        for rows, columns, warps in [(1, 1024, 4), (4, 512, 4), (8, 256, 8), (16, 256, 8)]
    ],
    key=["rows", "columns"],
)
@triton.jit
def gelu_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (r < rows) & (c < columns)
    at = r * columns + c
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    v = 1.5957691216057308 * (x + 0.044715 * x * x * x)
    tl.store(y_ptr + at, x * tl.sigmoid(v), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        rows, columns = x.shape

        def grid(meta):
            return triton.cdiv(rows, meta["ROWS"]), triton.cdiv(columns, meta["COLUMNS"])

        gelu_kernel[grid](x, y, rows, columns)
        return y
