"""ReLU into a buffer that is kept for each shape and overwritten at every call.

Style: output buffer reused
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
    tl.store(y_ptr + offsets, tl.where(x > 0.0, x, 0.0), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        # Allocation only: every element is computed anew in each forward.
        self._outputs = {}

    def _output_for(self, x):
        key = (tuple(x.shape), x.dtype, x.device)
        if key not in self._outputs:
            self._outputs[key] = torch.empty_like(x)
        return self._outputs[key]

    def forward(self, x):
        y = self._output_for(x)
        n = x.numel()
        relu_kernel[(triton.cdiv(n, 2048),)](x, y, n, BLOCK=2048, num_warps=8)
        return y
