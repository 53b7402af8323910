"""Tanh as an operator made with torch.library.triton_op and wrap_triton.

Style: triton_op
Task: tanh
Device: cuda
Slow: no
"""

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    magnitude = tl.abs(x)
    e = tl.exp(-2.0 * magnitude)
    far = (1.0 - e) / (1.0 + e)
    s = x * x
    p = -5.70498872745e-3 * s + 2.06390887954e-2
    p = p * s - 5.37397155531e-2
    p = p * s + 1.33314422036e-1
    p = p * s - 3.33332819422e-1
    y = tl.where(magnitude < 0.625, x + x * (s * p), tl.where(x < 0.0, -far, far))
    tl.store(y_ptr + offsets, y, mask=inside)


@triton_op("activations::tanh", mutates_args={})
def tanh(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    n = x.numel()
    wrap_triton(tanh_kernel)[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096)
    return y


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return tanh(x)
