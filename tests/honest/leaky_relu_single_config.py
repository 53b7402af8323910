"""Leaky ReLU under @triton.autotune with one configuration and a pre_hook of its own.

Style: autotune
Task: leaky_relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl

launches = {"count": 0}


def count_launch(arguments):
    launches["count"] += 1


@triton.autotune(
    configs=[triton.Config({"BLOCK": 2048}, num_warps=8, pre_hook=count_launch)],
    key=["n"],
)
@triton.jit
def leaky_relu_kernel(x_ptr, y_ptr, n, slope, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.maximum(x, x * slope), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        # max(x, slope * x) is the leaky ReLU for slopes up to 1.
        assert negative_slope <= 1.0
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        n = x.numel()

        def grid(meta):
            return (triton.cdiv(n, meta["BLOCK"]),)

        leaky_relu_kernel[grid](x, y, n, self.negative_slope)
        return y
