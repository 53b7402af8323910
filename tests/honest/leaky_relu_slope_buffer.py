"""Leaky ReLU whose slope is a registered buffer that the kernel loads.

Style: register_buffer
Task: leaky_relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def leaky_relu_kernel(x_ptr, slope_ptr, y_ptr, n, BLOCK: tl.constexpr):
    slope = tl.load(slope_ptr)
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    negative = tl.minimum(x, 0.0)
    tl.store(y_ptr + offsets, (x - negative) + slope * negative, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.register_buffer("slope", torch.tensor([negative_slope], dtype=torch.float32), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        n = x.numel()
        leaky_relu_kernel[(triton.cdiv(n, 4096),)](x, self.slope, y, n, BLOCK=4096)
        return y
