"""Leaky ReLU whose slope is made into a tensor on the device at every call.

Style: small host tensors
Task: leaky_relu
Device: any
Slow: no
"""

import contextlib

import torch
import triton
import triton.language as tl


@triton.jit
def leaky_relu_kernel(x_ptr, y_ptr, slopes_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    slope = tl.load(slopes_ptr + (x < 0.0).to(tl.int32), mask=inside)
    tl.store(y_ptr + offsets, x * slope, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext():
            slopes = torch.tensor([1.0, self.negative_slope], device=x.device)
            y = torch.empty_like(x)
            leaky_relu_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, slopes, x.numel(), BLOCK=4096)
        return y
