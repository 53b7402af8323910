"""Stable sort by rank: each element counts those that come before it and is stored at that place.

Style: scatter by rank
Task: sort_rows
Device: any
Slow: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rank_kernel(x_ptr, y_ptr, order_ptr, columns, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * columns
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + c, mask=c < columns, other=0.0)
    rank = tl.zeros((BLOCK,), tl.int32)
    for j in range(columns):
        other = tl.load(x_ptr + base + j)
        rank += ((other < x) | ((other == x) & (j < c))).to(tl.int32)
    tl.store(y_ptr + base + rank, x, mask=c < columns)
    tl.store(order_ptr + base + rank, c, mask=c < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        values = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        order = torch.empty(x.shape, dtype=torch.int32, device=x.device)
        rank_kernel[(rows,)](x, values, order, columns, BLOCK=triton.next_power_of_2(columns))
        return values, order
