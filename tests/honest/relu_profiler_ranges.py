"""ReLU with its launch marked for a profiler.

Style: profiler annotations
Task: relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl
from torch.profiler import record_function


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.maximum(x, 0.0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with record_function("relu: allocate"):
            y = torch.empty_like(x)
        with record_function("relu: launch"):
            relu_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        return y
