"""Sigmoid with the PTX instruction ex2.approx written by hand.

Style: inline assembly
Task: sigmoid
Device: cuda
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def ptx_exp2(x):
    return tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def sigmoid_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    e = ptx_exp2(-1.4426950408889634 * tl.abs(x))
    tl.store(y_ptr + offsets, tl.where(x < 0.0, e, 1.0) / (1.0 + e), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        sigmoid_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096, num_warps=8)
        return y
