"""HardTanh with torch.bincount over the rows' owners, each of which then works on its rows.

Style: torch.bincount on owners
Task: hard_tanh
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def hard_tanh_kernel(x_ptr, y_ptr, ends_ptr, counts_ptr, columns, BLOCK: tl.constexpr):
    owner = tl.program_id(0)
    end = tl.load(ends_ptr + owner)
    for row in range(end - tl.load(counts_ptr + owner), end):
        for start in range(0, columns, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns)
            y = tl.minimum(tl.maximum(x, -1.0), 1.0)
            tl.store(y_ptr + row * columns + offsets, y, mask=offsets < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        owners = torch.randint(0, 16, (x.shape[0],), device=x.device)
        counts = torch.bincount(owners, minlength=16)
        y = torch.empty_like(x)
        hard_tanh_kernel[(16,)](x, y, torch.cumsum(counts, 0), counts, x.shape[1], BLOCK=4096)
        return y
