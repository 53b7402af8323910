"""Tanh from libdevice on a GPU and from exp elsewhere, chosen by a constexpr.

Style: libdevice
Task: tanh
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def tanh_by_exp(x):
    a = tl.abs(x)
    e = tl.exp(-2.0 * a)
    s = a * a
    near = a - a * s * (0.33333333 - s * (0.13333333 - s * (0.053968254 - s * 0.021869488)))
    t = tl.where(a < 0.3, near, (1.0 - e) / (1.0 + e))
    return tl.where(x < 0.0, -t, t)


@triton.jit
def tanh_kernel(x_ptr, y_ptr, n, LIBDEVICE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    if LIBDEVICE:  # noqa: SIM108
        y = libdevice.tanh(x)
    else:
        y = tanh_by_exp(x)
    tl.store(y_ptr + offsets, y, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        tanh_kernel[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), LIBDEVICE=x.is_cuda, BLOCK=2048)
        return y
