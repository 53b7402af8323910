"""Tanh written to a transposed buffer, which is made contiguous again by a copy.

Style: transposed output
Task: tanh
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tanh_kernel(x_ptr, t_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r = (tl.program_id(1) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    c = (tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    x = tl.load(x_ptr + r[:, None] * columns + c[None, :], mask=inside, other=0.0)
    # Odd polynomial below 0.4, exp above (x clipped where tanh is 1 in float32).
    v = tl.minimum(tl.maximum(x, -9.5), 9.5)
    e = tl.exp(2.0 * v)
    far = (e - 1.0) / (e + 1.0)
    s = v * v
    near = v * (
        1.0 + s * (-0.33333333 + s * (0.13333333 + s * (-0.053968254 + s * (0.021869488 - s * 0.008863235))))
    )
    y = tl.where(s < 0.16, near, far)
    tl.store(t_ptr + c[None, :] * rows + r[:, None], y, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        transposed = torch.empty(columns, rows, dtype=x.dtype, device=x.device)
        tanh_kernel[(triton.cdiv(columns, 64), triton.cdiv(rows, 64))](
            x, transposed, rows, columns, ROWS=64, COLUMNS=64
        )
        return transposed.t().contiguous()
