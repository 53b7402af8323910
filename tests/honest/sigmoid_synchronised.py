"""Sigmoid that synchronises before and after its launch, and times itself with events.

Style: explicit synchronisation
Task: sigmoid
Device: cuda
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sigmoid_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, 1.0 / (1.0 + tl.exp(-x)), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last_ms = 0.0

    def forward(self, x):
        y = torch.empty_like(x)
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        sigmoid_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        end.record()
        torch.cuda.synchronize()
        self.last_ms = start.elapsed_time(end)
        return y
