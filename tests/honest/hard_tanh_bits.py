"""HardTanh on the bits: a magnitude over one is replaced by one, the sign is kept.

Style: bit casts
Task: hard_tanh
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def hard_tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    bits = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.int32, bitcast=True)
    magnitude = bits & 0x7FFFFFFF
    # 0x3F800000 is 1.0; magnitudes of floats are ordered like integers.
    clamped = tl.minimum(magnitude, 0x3F800000)
    y = (clamped | (bits ^ magnitude)).to(tl.float32, bitcast=True)
    tl.store(y_ptr + offsets, y, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        hard_tanh_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        return y
