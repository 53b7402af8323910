"""RMS norm in Triton: whole rows in registers, so that each value is read once; short rows share a program."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, y_ptr, rows, dim, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    # 64-bit: byte offsets of a large tensor do not fit into 32 bits.
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    offsets = row * dim + column
    inside = column < dim
    mask = (row < rows - first) & inside
    x = tl.load(x_ptr + first * dim + offsets, mask=mask, other=0.0).to(tl.float32)

    mean_square = tl.sum(x * x, axis=1, keep_dims=True) / dim
    scale = 1.0 / tl.sqrt(mean_square + 1e-6)

    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    y = x * scale * weight
    tl.store(y_ptr + first * dim + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, dim = x.shape
        block = triton.next_power_of_2(dim)
        rows_each = max(8192 // block, 1)
        rms_norm_kernel[(triton.cdiv(rows, rows_each),)](
            x, self.weight, y, rows, dim, ROWS=rows_each, BLOCK=block, num_warps=8
        )
        return y
