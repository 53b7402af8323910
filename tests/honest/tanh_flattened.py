"""Tanh on a flattened view, with hints of contiguity and a first-call set-up.

Style: view and reshape
Task: tanh
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 128 == 0)
    start = tl.multiple_of(tl.program_id(0).to(tl.int64) * BLOCK, BLOCK)
    offsets = start + tl.max_contiguous(tl.arange(0, BLOCK), BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    # 2 / (1 + exp(-2x)) - 1 where that is exact enough, an odd polynomial near zero.
    far = 2.0 / (1.0 + tl.exp(-2.0 * x)) - 1.0
    s = x * x
    near = -0.00886323552990219656886 + s * 0.00359212803657248101358
    near = 0.0218694885361552028549 + s * near
    near = -0.0539682539682539682540 + s * near
    near = 0.133333333333333333333 + s * near
    near = x + x * s * (-0.333333333333333333333 + s * near)
    tl.store(y_ptr + offsets, tl.where(tl.abs(x) < 0.4, near, far), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self._ready = False

    def _prepare(self, x):
        # At the first call, when the device is known.
        self._block = 1024 if x.numel() < 1 << 22 else 4096
        self._ready = True

    def forward(self, x):
        if not self._ready:
            self._prepare(x)
        shape = x.shape
        flat = x.contiguous().flatten()
        y = flat.new_empty(flat.shape)
        grid = (triton.cdiv(flat.numel(), self._block),)
        tanh_kernel[grid](flat, y, flat.numel(), BLOCK=self._block)
        return y.reshape(shape)
