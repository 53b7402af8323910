"""HardTanh where each program handles four blocks that lie a stride apart.

Style: static_range
Task: hard_tanh
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def hard_tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, ILP: tl.constexpr):
    stride = tl.num_programs(0).to(tl.int64) * BLOCK
    first = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    for i in tl.static_range(0, ILP):
        offsets = first + i * stride
        inside = offsets < n
        x = tl.load(x_ptr + offsets, mask=inside)
        tl.store(y_ptr + offsets, tl.clamp(x, -1.0, 1.0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        n = x.numel()
        hard_tanh_kernel[(triton.cdiv(n, 1024 * 4),)](x, y, n, BLOCK=1024, ILP=4)
        return y
