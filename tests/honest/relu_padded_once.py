"""ReLU without a mask at sizes that fit whole blocks, and with a padded copy elsewhere.

Style: padding
Task: relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl

BLOCK = 4096


@triton.jit
def relu_whole_blocks(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets), 0.0))


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.numel()
        blocks = triton.cdiv(n, BLOCK)
        if n == blocks * BLOCK:
            y = torch.empty_like(x)
            relu_whole_blocks[(blocks,)](x, y, BLOCK=BLOCK)
            return y
        padded = x.new_zeros(blocks * BLOCK)
        padded[:n].copy_(x.view(-1))
        y = torch.empty_like(padded)
        relu_whole_blocks[(blocks,)](padded, y, BLOCK=BLOCK)
        return y[:n].view(x.shape)
