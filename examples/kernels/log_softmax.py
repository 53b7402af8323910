"""Row log-softmax in Triton: one program a row, online, in two passes.

The first pass keeps a running maximum and a running sum in every lane (Milakov and Gimelshein,
"Online normalizer calculation for softmax", 2018); the second pass runs backwards, because the
end of the row is what the L2 cache still holds.
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def log_softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    # The start of a row is 64-bit: byte offsets of a large tensor do not fit into 32 bits.
    row_start = tl.program_id(0).to(tl.int64) * columns
    x_row = x_ptr + row_start
    y_row = y_ptr + row_start
    lanes = tl.arange(0, BLOCK)

    # A finite start: with -inf, lanes that are masked out would compute -inf - -inf.
    maximum = tl.full((BLOCK,), -3.4028234663852886e38, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + lanes
        x = tl.load(x_row + offsets, mask=offsets < columns, other=float("-inf"))
        # One exp an element: either the new term or the old sum is scaled, never both.
        above = x - maximum
        e = tl.exp(-tl.abs(above))
        total = tl.where(above > 0.0, total * e + 1.0, total + e)
        maximum = tl.maximum(maximum, x)

    row_maximum = tl.max(maximum, axis=0)
    row_total = tl.sum(total * tl.exp(maximum - row_maximum), axis=0)
    log_total = tl.log(row_total)

    blocks = tl.cdiv(columns, BLOCK)
    for i in range(blocks):
        offsets = (blocks - 1 - i) * BLOCK + lanes
        mask = offsets < columns
        x = tl.load(x_row + offsets, mask=mask, eviction_policy="evict_first")
        y = (x - row_maximum) - log_total
        tl.store(y_row + offsets, y, mask=mask, eviction_policy="evict_first")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, columns = x.shape
        block = min(triton.next_power_of_2(columns), 16384)
        log_softmax_kernel[(rows,)](x, y, columns, BLOCK=block, num_warps=16)
        return y
