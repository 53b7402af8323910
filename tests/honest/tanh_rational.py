"""Tanh as a rational function of degree 13 over 6 on a clamped range, good to a few units in the last place.

Style: rational tanh
Task: tanh
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    # Beyond this tanh rounds to one.
    x = tl.minimum(tl.maximum(x, -7.90531110763549805), 7.90531110763549805)
    s = x * x
    p = -2.76076847742355e-16 * s + 2.00018790482477e-13
    p = p * s - 8.60467152213735e-11
    p = p * s + 5.12229709037114e-08
    p = p * s + 1.48572235717979e-05
    p = p * s + 6.37261928875436e-04
    p = p * s + 4.89352455891786e-03
    q = 1.19825839466702e-06 * s + 1.18534705686654e-04
    q = q * s + 2.26843463243900e-03
    q = q * s + 4.89352518554385e-03
    tl.store(y_ptr + offsets, x * p / q, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        tanh_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        return y
