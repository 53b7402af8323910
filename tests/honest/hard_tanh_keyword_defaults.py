"""HardTanh with the limits as keyword arguments of forward.

Style: keyword defaults
Task: hard_tanh
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def hard_tanh_kernel(
    x_ptr,
    y_ptr,
    n,
    low,
    high,
    BLOCK: tl.constexpr = 4096,
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.where(x < low, low, x)
    y = tl.where(y > high, high, y)
    tl.store(y_ptr + offsets, y, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(
        self, x: torch.Tensor, min_val: float = -1.0, max_val: float = 1.0, *, out: torch.Tensor | None = None
    ) -> torch.Tensor:
        y = torch.empty_like(x) if out is None else out
        hard_tanh_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), min_val, max_val)
        return y
