"""HardTanh with the tensors viewed as integers on the host.

Style: dtype views
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
    x = tl.load(x_ptr + offsets, mask=inside, other=0).to(tl.float32, bitcast=True)
    y = tl.minimum(tl.maximum(x, -1.0), 1.0)
    tl.store(y_ptr + offsets, y.to(tl.int32, bitcast=True), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty(x.shape, dtype=torch.int32, device=x.device)
        hard_tanh_kernel[(triton.cdiv(x.numel(), 4096),)](x.view(torch.int32), y, x.numel(), BLOCK=4096)
        return y.view(torch.float32)
