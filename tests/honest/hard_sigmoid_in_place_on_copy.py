"""HardSigmoid in place on a copy of the input.

Style: in place on a clone
Task: hard_sigmoid
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def hard_sigmoid_in_place(data_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(data_ptr + offsets, mask=inside)
    y = tl.where(x <= -3.0, 0.0, tl.where(x >= 3.0, 1.0, (x + 3.0) / 6.0))
    tl.store(data_ptr + offsets, y, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        hard_sigmoid_in_place[(triton.cdiv(y.numel(), 4096),)](y, y.numel(), BLOCK=4096)
        return y
