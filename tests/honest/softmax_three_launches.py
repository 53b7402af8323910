"""Softmax in three launches over row chunks: maxima, sums, quotients, through two workspaces.

Style: several kernels
Task: softmax
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def partial_max_kernel(x_ptr, partial_ptr, columns, chunks, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    chunk = tl.program_id(0)
    c = chunk * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + c, mask=c < columns, other=-float("inf"))
    tl.store(partial_ptr + row * chunks + chunk, tl.max(x, axis=0))


@triton.jit
def partial_sum_kernel(
    x_ptr, max_ptr, partial_ptr, columns, chunks, BLOCK: tl.constexpr, CHUNKS: tl.constexpr
):
    row = tl.program_id(1).to(tl.int64)
    chunk = tl.program_id(0)
    k = tl.arange(0, CHUNKS)
    top = tl.max(tl.load(max_ptr + row * chunks + k, mask=k < chunks, other=-float("inf")), axis=0)
    c = chunk * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + c, mask=c < columns, other=-float("inf"))
    tl.store(partial_ptr + row * chunks + chunk, tl.sum(tl.exp(x - top), axis=0))


@triton.jit
def normalise_kernel(
    x_ptr, y_ptr, max_ptr, sum_ptr, columns, chunks, BLOCK: tl.constexpr, CHUNKS: tl.constexpr
):
    row = tl.program_id(1).to(tl.int64)
    k = tl.arange(0, CHUNKS)
    top = tl.max(tl.load(max_ptr + row * chunks + k, mask=k < chunks, other=-float("inf")), axis=0)
    total = tl.sum(tl.load(sum_ptr + row * chunks + k, mask=k < chunks, other=0.0), axis=0)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + c, mask=c < columns, other=-float("inf"))
    tl.store(y_ptr + row * columns + c, tl.exp(x - top) / total, mask=c < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        rows, columns = x.shape
        block = min(8192, triton.next_power_of_2(columns))
        chunks = triton.cdiv(columns, block)
        padded = triton.next_power_of_2(chunks)
        maxima = torch.empty((rows, chunks), dtype=torch.float32, device=x.device)
        sums = torch.empty_like(maxima)
        y = torch.empty_like(x)
        grid = (chunks, rows)
        partial_max_kernel[grid](x, maxima, columns, chunks, BLOCK=block, num_warps=8)
        partial_sum_kernel[grid](x, maxima, sums, columns, chunks, BLOCK=block, CHUNKS=padded, num_warps=8)
        normalise_kernel[grid](x, y, maxima, sums, columns, chunks, BLOCK=block, CHUNKS=padded, num_warps=8)
        return y
