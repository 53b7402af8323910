"""HardSigmoid with tl.fma and tl.clamp.

Style: tl.clamp and tl.fma
Task: hard_sigmoid
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def hard_sigmoid_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    sixth = tl.full([BLOCK], 1.0 / 6.0, tl.float32)
    half = tl.full([BLOCK], 0.5, tl.float32)
    tl.store(y_ptr + offsets, tl.clamp(tl.fma(x, sixth, half), 0.0, 1.0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        hard_sigmoid_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        return y
