"""Swish with a logger, warnings, prints and a counter of calls.

Style: logging and prints
Task: swish
Device: any
Slow: no
"""

import logging
import warnings

import torch
import triton
import triton.language as tl

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("swish")


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, x / (1.0 + tl.exp(-x)), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        print("ModelNew constructed")

    def forward(self, x):
        self.calls += 1
        if self.calls == 1:
            log.info("first call: %s on %s", tuple(x.shape), x.device)
            if x.numel() % 4096:
                warnings.warn("the last block is partly masked", stacklevel=2)
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        return y
