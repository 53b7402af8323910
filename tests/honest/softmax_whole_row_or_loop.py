"""Softmax with two kernels: a whole row in registers where it fits, three passes in a loop where not.

Style: two code paths
Task: softmax
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl

MAX_FUSED_COLUMNS = 16384


@triton.jit
def fused_kernel(out_ptr, in_ptr, in_stride, out_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    values = tl.load(in_ptr + row * in_stride + cols, mask=cols < n_cols, other=-float("inf"))
    numerator = tl.exp(values - tl.max(values, axis=0))
    tl.store(out_ptr + row * out_stride + cols, numerator / tl.sum(numerator, axis=0), mask=cols < n_cols)


@triton.jit
def looped_kernel(out_ptr, in_ptr, in_stride, out_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    in_ptr += row * in_stride
    out_ptr += row * out_stride
    top = tl.full([BLOCK_SIZE], -float("inf"), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        top = tl.maximum(top, tl.load(in_ptr + cols, mask=cols < n_cols, other=-float("inf")))
    row_max = tl.max(top, axis=0)
    partial = tl.zeros([BLOCK_SIZE], tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        partial += tl.exp(tl.load(in_ptr + cols, mask=cols < n_cols, other=-float("inf")) - row_max)
    inverse = 1.0 / tl.sum(partial, axis=0)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        values = tl.load(in_ptr + cols, mask=cols < n_cols, other=-float("inf"))
        tl.store(out_ptr + cols, tl.exp(values - row_max) * inverse, mask=cols < n_cols)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x if x.is_contiguous() else x.contiguous()
        y = torch.empty_like(x)
        rows, columns = x.shape
        if columns <= MAX_FUSED_COLUMNS:
            kernel, block = fused_kernel, triton.next_power_of_2(columns)
        else:
            kernel, block = looped_kernel, 8192
        warps = 4
        if block >= 2048:
            warps = 8
        if block >= 8192:
            warps = 16
        kernel[(rows,)](y, x, x.stride(0), y.stride(0), columns, BLOCK_SIZE=block, num_warps=warps)
        return y
