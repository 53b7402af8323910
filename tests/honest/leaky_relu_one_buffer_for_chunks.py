"""LeakyReLU chunk by chunk into one buffer, out of which every chunk is copied to its place.

Style: one buffer for all chunks
Task: leaky_relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def leaky_relu_kernel(x_ptr, y_ptr, slope, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.where(x > 0, x, x * slope), mask=offsets < n)


class ModelNew(torch.nn.Module):
    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        rows = triton.cdiv(x.shape[0], 4)
        buffer = x.new_empty(rows, x.shape[1])
        for source, target in zip(x.split(rows), y.split(rows), strict=True):
            n = source.numel()
            leaky_relu_kernel[(triton.cdiv(n, 8192),)](source, buffer, self.negative_slope, n, BLOCK=8192)
            target.copy_(buffer[: source.shape[0]])
        return y
