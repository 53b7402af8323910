"""ReLU without a mask: the input is padded to whole blocks first and the output cut afterwards.

Style: padding
Task: relu
Device: any
Slow: no
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

BLOCK = 4096


@triton.jit
def relu_whole_blocks(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets), 0.0))


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1)
        missing = -flat.numel() % BLOCK
        padded = F.pad(flat, (0, missing))
        y = torch.empty_like(padded)
        relu_whole_blocks[(padded.numel() // BLOCK,)](padded, y, BLOCK=BLOCK)
        return y[: flat.numel()].reshape(x.shape)
