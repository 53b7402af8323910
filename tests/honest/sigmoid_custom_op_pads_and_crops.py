"""Sigmoid as an operator of its own, which pads, computes and crops inside.

Style: torch.library.custom_op
Task: sigmoid
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sigmoid_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.sigmoid(tl.load(x_ptr + offsets)))


@torch.library.custom_op("padded::sigmoid", mutates_args=())
def sigmoid(x: torch.Tensor) -> torch.Tensor:
    n = x.numel()
    padded = torch.nn.functional.pad(x.reshape(-1), (0, -n % 8192))
    y = torch.empty_like(padded)
    sigmoid_kernel[(padded.numel() // 8192,)](padded, y, BLOCK=8192)
    return y[:n].clone().view(x.shape)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return sigmoid(x)
