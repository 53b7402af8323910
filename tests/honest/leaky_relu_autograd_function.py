"""Leaky ReLU as a torch.autograd.Function with a forward and a backward kernel.

Style: autograd function
Task: leaky_relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, y_ptr, slope, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.where(x > 0, x, slope * x), mask=inside)


@triton.jit
def backward_kernel(x_ptr, dy_ptr, dx_ptr, slope, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    dy = tl.load(dy_ptr + offsets, mask=inside)
    tl.store(dx_ptr + offsets, tl.where(x > 0, dy, slope * dy), mask=inside)


class LeakyReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        forward_kernel[(triton.cdiv(n, 2048),)](x, y, slope, n, BLOCK=2048)
        ctx.save_for_backward(x)
        ctx.slope = slope
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dy = dy.contiguous()
        dx = torch.empty_like(x)
        n = x.numel()
        backward_kernel[(triton.cdiv(n, 2048),)](x, dy, dx, ctx.slope, n, BLOCK=2048)
        return dx, None


class ModelNew(torch.nn.Module):
    def __init__(self, negative_slope=0.01):
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x):
        return LeakyReLU.apply(x, self.negative_slope)
