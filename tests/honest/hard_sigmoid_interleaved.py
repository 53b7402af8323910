"""HardSigmoid on pairs of neighbours, which are split and joined again.

Style: split and join
Task: hard_sigmoid
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def one(x):
    y = x * 0.16666667 + 0.5
    return tl.minimum(1.0, tl.maximum(0.0, y))


@triton.jit
def hard_sigmoid_kernel(x_ptr, y_ptr, n, PAIRS: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * (2 * PAIRS)
    offsets = start + tl.arange(0, PAIRS)[:, None] * 2 + tl.arange(0, 2)[None, :]
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    even, odd = tl.split(x)
    tl.store(y_ptr + offsets, tl.join(one(even), one(odd)), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        n = x.numel()
        hard_sigmoid_kernel[(triton.cdiv(n, 4096),)](x, y, n, PAIRS=2048)
        return y
