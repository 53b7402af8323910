"""Leaky ReLU whose rows are found through a small table of offsets, made with torch.arange.

Style: index arithmetic in torch
Task: leaky_relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def leaky_relu_kernel(x_ptr, y_ptr, offsets_ptr, slope, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    first = tl.load(offsets_ptr + row)
    last = tl.load(offsets_ptr + row + 1)
    at = first + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < last, other=0.0)
    tl.store(y_ptr + at, tl.where(x < 0.0, x * slope, x), mask=at < last)


class ModelNew(torch.nn.Module):
    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        # One more than there are rows, as for ragged batches. Only positions are computed here, no values.
        offsets = torch.arange(rows + 1, dtype=torch.int64, device=x.device) * columns
        y = torch.empty_like(x)
        grid = (triton.cdiv(columns, 4096), rows)
        leaky_relu_kernel[grid](x, y, offsets, self.negative_slope, BLOCK=4096)
        return y
