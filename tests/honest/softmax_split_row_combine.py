"""Softmax with rows split over programs: partial maxima and sums, one combining kernel, one scaling kernel.

Style: split rows
Task: softmax
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, m_ptr, s_ptr, columns, chunk_columns, chunks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    first = chunk * chunk_columns
    last = min(first + chunk_columns, columns)
    m = -float("inf")
    s = 0.0
    for start in range(first, last, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + c, mask=c < last, other=-float("inf"))
        new_m = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - new_m) + tl.sum(tl.exp(x - new_m), 0)
        m = new_m
    tl.store(m_ptr + row * chunks + chunk, m)
    tl.store(s_ptr + row * chunks + chunk, s)


@triton.jit
def combine_kernel(m_ptr, s_ptr, row_m_ptr, row_s_ptr, chunks, CHUNKS: tl.constexpr):
    row = tl.program_id(0)
    k = tl.arange(0, CHUNKS)
    m = tl.load(m_ptr + row * chunks + k, mask=k < chunks, other=-float("inf"))
    s = tl.load(s_ptr + row * chunks + k, mask=k < chunks, other=0.0)
    top = tl.max(m, 0)
    tl.store(row_m_ptr + row, top)
    tl.store(row_s_ptr + row, tl.sum(s * tl.exp(m - top), 0))


@triton.jit
def scale_kernel(x_ptr, y_ptr, row_m_ptr, row_s_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = tl.load(row_m_ptr + row)
    inverse = 1.0 / tl.load(row_s_ptr + row)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + c, mask=c < columns, other=0.0)
    tl.store(y_ptr + row * columns + c, tl.exp(x - m) * inverse, mask=c < columns)


class ModelNew(torch.nn.Module):
    splits = 6

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        block = 1024 if columns > 1024 else 128
        chunk_columns = triton.cdiv(triton.cdiv(columns, self.splits), block) * block
        chunks = triton.cdiv(columns, chunk_columns)
        workspace = torch.empty(2 * rows * (chunks + 1), dtype=torch.float32, device=x.device)
        m, s, row_m, row_s = workspace.split([rows * chunks, rows * chunks, rows, rows])
        y = torch.empty_like(x)
        partial_kernel[(rows, chunks)](x, m, s, columns, chunk_columns, chunks, BLOCK=block)
        combine_kernel[(rows,)](m, s, row_m, row_s, chunks, CHUNKS=triton.next_power_of_2(chunks))
        scale_kernel[(rows, triton.cdiv(columns, 4 * block))](x, y, row_m, row_s, columns, BLOCK=4 * block)
        return y
