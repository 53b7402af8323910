"""Leaky ReLU with heuristics that choose the block and drop the mask where it is not needed.

Style: heuristics
Task: leaky_relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.heuristics(
    {
        "BLOCK": lambda args: 4096 if args["n"] >= 1 << 20 else 1024,
        "EVEN": lambda args: args["n"] % (4096 if args["n"] >= 1 << 20 else 1024) == 0,
    }
)
@triton.jit
def leaky_relu_kernel(x_ptr, y_ptr, n, slope, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + offsets)
        tl.store(y_ptr + offsets, tl.where(x < 0, slope * x, x))
    else:
        inside = offsets < n
        x = tl.load(x_ptr + offsets, mask=inside)
        tl.store(y_ptr + offsets, tl.where(x < 0, slope * x, x), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        n = x.numel()
        leaky_relu_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n, self.negative_slope)
        return y
