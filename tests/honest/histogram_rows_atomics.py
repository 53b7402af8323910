"""Histogram by atomic additions into whole-number counters, which a second kernel turns into shares.

Style: histogram by atomics
Task: histogram_rows
Device: any
"""

import torch
import triton
import triton.language as tl

BINS = 64


@triton.jit
def count_kernel(x_ptr, count_ptr, columns, BINS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = c < columns
    x = tl.load(x_ptr + row * columns + c, mask=inside, other=0.0)
    # Clamped before it becomes a whole number, which a huge value would not fit into.
    # x * 16 is exact, which x * 16 + 32 is not: a value just below an edge must stay there.
    at = tl.minimum(tl.maximum(tl.floor(x * 16), -32.0), 31.0).to(tl.int32) + 32
    tl.atomic_add(count_ptr + row * BINS + at, 1, mask=inside)


@triton.jit
def share_kernel(count_ptr, y_ptr, columns, BINS: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BINS + tl.arange(0, BINS)
    tl.store(y_ptr + at, tl.load(count_ptr + at).to(tl.float32) / columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        counts = torch.zeros(rows, BINS, dtype=torch.int32, device=x.device)
        y = torch.empty(rows, BINS, dtype=x.dtype, device=x.device)
        count_kernel[(triton.cdiv(columns, 1024), rows)](x, counts, columns, BINS=BINS, BLOCK=1024)
        share_kernel[(rows,)](counts, y, columns, BINS=BINS)
        return y
