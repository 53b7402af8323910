"""Batch norm of a batch: shifted sums by float64 atomics, a kernel for scale and shift, one that applies them.

Style: float64 atomics
Task: batch_norm_training
Device: any
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, s_ptr, channels, area, BLOCK: tl.constexpr):
    image = tl.program_id(0).to(tl.int64)
    channel = image % channels
    total = tl.zeros((BLOCK,), tl.float64)
    squares = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, area, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + image * area + i, mask=i < area, other=0.0).to(tl.float64)
        total += x
        squares += x * x
    tl.atomic_add(s_ptr + channel * 2, tl.sum(total, 0))
    tl.atomic_add(s_ptr + channel * 2 + 1, tl.sum(squares, 0))


@triton.jit
def apply_kernel(x_ptr, y_ptr, s_ptr, w_ptr, b_ptr, channels, area, count, BLOCK: tl.constexpr):
    image = tl.program_id(0).to(tl.int64)
    channel = image % channels
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mean = tl.load(s_ptr + channel * 2) / count
    variance = tl.load(s_ptr + channel * 2 + 1) / count - mean * mean
    inverse = 1.0 / tl.sqrt(variance + 1e-5)
    x = tl.load(x_ptr + image * area + i, mask=i < area).to(tl.float64)
    y = ((x - mean) * inverse).to(tl.float32) * tl.load(w_ptr + channel) + tl.load(b_ptr + channel)
    tl.store(y_ptr + image * area + i, y, mask=i < area)


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(channels))
        self.bias = torch.nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        batch, channels, height, width = x.shape
        area = height * width
        sums = torch.zeros(channels, 2, dtype=torch.float64, device=x.device)
        y = torch.empty_like(x)
        sums_kernel[(batch * channels,)](x, sums, channels, area, BLOCK=1024)
        apply_kernel[(batch * channels, triton.cdiv(area, 1024))](
            x, y, sums, self.weight, self.bias, channels, area, batch * area, BLOCK=1024
        )
        return y
