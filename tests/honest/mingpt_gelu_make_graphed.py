"""GELU graphed by torch.cuda.make_graphed_callables at the first call.

Style: CUDA graph
Task: mingpt_gelu
Device: cuda
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    v = 1.5957691216057308 * (x + 0.044715 * x * x * x)
    tl.store(y_ptr + offsets, x / (1.0 + tl.exp(-v)), mask=inside)


def gelu(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    gelu_kernel[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), BLOCK=2048)
    return y


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.graphed = None

    def forward(self, x):
        if self.graphed is None:
            # The callable copies its argument into the graph's own input and replays.
            self.graphed = torch.cuda.make_graphed_callables(gelu, (torch.empty_like(x),))
        return self.graphed(x)
