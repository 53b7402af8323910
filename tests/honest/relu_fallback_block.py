"""ReLU that falls back to a smaller block where the larger one cannot be launched.

Style: try and except
Task: relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    # The same as torch.relu(x), which is not used here.
    tl.store(y_ptr + offsets, tl.maximum(x, 0.0), mask=inside)


def launch(x, y, block, warps):
    n = x.numel()
    relu_kernel[(triton.cdiv(n, block),)](x, y, n, BLOCK=block, num_warps=warps)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        try:
            launch(x, y, 8192, 16)
        except Exception:  # e.g. out of resources on a small GPU
            launch(x, y, 1024, 4)
        return y
