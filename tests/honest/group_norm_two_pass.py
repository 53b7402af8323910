"""Group norm with whole groups walked three times: mean, variance, output. A launcher class holds the settings.

Style: launcher class
Task: group_norm
Device: any
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@triton.jit
def group_norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, area, channels_each, groups, eps, BLOCK: tl.constexpr):
    which = tl.program_id(0).to(tl.int64)
    size = area * channels_each
    x_ptr += which * size
    y_ptr += which * size
    first = which % groups * channels_each
    mean = 0.0
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        mean += tl.sum(tl.load(x_ptr + i, mask=i < size, other=0.0), axis=0)
    mean = mean / size
    variance = 0.0
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        d = tl.where(i < size, tl.load(x_ptr + i, mask=i < size, other=0.0) - mean, 0.0)
        variance += tl.sum(d * d, axis=0)
    inverse = tl.rsqrt(variance / size + eps)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < size
        w = tl.load(w_ptr + first + i // area, mask=inside, other=0.0)
        b = tl.load(b_ptr + first + i // area, mask=inside, other=0.0)
        x = tl.load(x_ptr + i, mask=inside)
        tl.store(y_ptr + i, (x - mean) * inverse * w + b, mask=inside)


@dataclass
class Launcher:
    """Runs the kernel.

    Attributes:
        groups: Groups of a sample.
        eps: Added to the variance.
        block: Elements taken at once.
    """

    groups: int
    eps: float = 1e-5
    block: int = 2048

    def __call__(self, x, weight, bias):
        batch, channels, height, width = x.shape
        y = torch.empty_like(x)
        grid = (batch * self.groups,)
        group_norm_kernel[grid](
            x,
            weight,
            bias,
            y,
            height * width,
            channels // self.groups,
            self.groups,
            self.eps,
            BLOCK=self.block,
        )
        return y


class ModelNew(torch.nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.launch = Launcher(groups)
        self.weight = torch.nn.Parameter(torch.ones(channels))
        self.bias = torch.nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return self.launch(x, self.weight, self.bias)
