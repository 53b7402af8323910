"""Sigmoid in a submodule, beside a parameter that is not used.

Style: submodules
Task: sigmoid
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def sigmoid_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.fdiv(1.0, 1.0 + tl.exp(-x)), mask=inside)


class TritonSigmoid(nn.Module):
    def __init__(self, block: int) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        sigmoid_kernel[(triton.cdiv(x.numel(), self.block),)](x, y, x.numel(), BLOCK=self.block)
        return y


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1), requires_grad=False)
        self.layers = nn.Sequential(nn.Identity(), TritonSigmoid(2048))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)
