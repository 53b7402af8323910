"""HardSigmoid written for 4096 x 393216 without masks, with a masked path for any other size.

Style: hard-coded sizes
Task: hard_sigmoid
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl

BATCH, DIM = 4096, 393216
BLOCK = 4096
BLOCKS_IN_A_ROW = DIM // BLOCK  # 96, without a remainder


@triton.jit
def hard_sigmoid(x):
    return tl.minimum(tl.maximum(x + 3.0, 0.0), 6.0) / 6.0


@triton.jit
def official_kernel(x_ptr, y_ptr, DIM: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(1).to(tl.int64) * DIM + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, hard_sigmoid(tl.load(x_ptr + offsets)))


@triton.jit
def general_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    tl.store(y_ptr + offsets, hard_sigmoid(x), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        if x.shape == (BATCH, DIM):
            official_kernel[(BLOCKS_IN_A_ROW, BATCH)](x, y, DIM=DIM, BLOCK=BLOCK, num_warps=8)
        else:
            n = x.numel()
            general_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, BLOCK=BLOCK, num_warps=8)
        return y
