"""Leaky ReLU on a side stream that waits for the current one and is waited for.

Style: side stream
Task: leaky_relu
Device: cuda
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def leaky_relu_kernel(x_ptr, y_ptr, n, slope, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.where(x < 0, slope * x, x), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.side = torch.cuda.Stream()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        current = torch.cuda.current_stream(x.device)
        self.side.wait_stream(current)
        with torch.cuda.stream(self.side):
            n = x.numel()
            leaky_relu_kernel[(triton.cdiv(n, 4096),)](x, y, n, self.negative_slope, BLOCK=4096)
        x.record_stream(self.side)
        y.record_stream(self.side)
        current.wait_stream(self.side)
        return y
