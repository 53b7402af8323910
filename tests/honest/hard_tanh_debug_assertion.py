"""HardTanh with an assertion on its first element left in.

Style: assertions
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
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.device_assert(n > 0)
    tl.store(y_ptr + offsets, tl.minimum(tl.maximum(x, -1.0), 1.0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.dtype == torch.float32, x.dtype
        assert x.is_contiguous(), "pass a contiguous tensor"
        y = torch.empty_like(x)
        hard_tanh_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        assert y.shape == x.shape
        first = y[0, 0].item()
        assert -1.0 <= first <= 1.0, first
        return y
