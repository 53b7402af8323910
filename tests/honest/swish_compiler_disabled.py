"""Swish whose launcher is kept out of torch.compile.

Style: torch.compiler.disable
Task: swish
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)
    y = x * (1.0 / (1.0 + tl.exp2(x * -1.4426950408889634)))
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


@torch.compiler.disable
def swish(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    swish_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
    return y


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return swish(x.contiguous().to(torch.float32))
