"""Stable sort by tl.sort of 64-bit keys: the value's bits, made to sort as numbers, above its column.

Style: tl.sort
Task: sort_rows
Device: any
Slow: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sort_kernel(x_ptr, y_ptr, order_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    inside = c < columns
    x = tl.load(x_ptr + row * columns + c, mask=inside, other=float("inf"))
    # Minus zero equals zero, so it must not come before it.
    bits = (x + 0.0).to(tl.int32, bitcast=True)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    bits = tl.where(x == 0.0, 0, bits)
    keys = (bits.to(tl.int64) << 32) | c.to(tl.int64)
    order = (tl.sort(keys) & 0xFFFFFFFF).to(tl.int32)
    values = tl.load(x_ptr + row * columns + order, mask=inside)
    tl.store(y_ptr + row * columns + c, values, mask=inside)
    tl.store(order_ptr + row * columns + c, order, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        values = torch.empty_like(x)
        order = torch.empty_like(x, dtype=torch.int32)
        sort_kernel[(rows,)](x, values, order, columns, BLOCK=triton.next_power_of_2(columns), num_warps=1)
        return values, order
