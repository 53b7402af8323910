"""HardTanh whose loads have an eviction policy and whose stores have a cache modifier.

Style: cache modifiers
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
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0, eviction_policy="evict_first")
    y = tl.maximum(-1.0, tl.minimum(1.0, x))
    tl.store(y_ptr + offsets, y, mask=inside, cache_modifier=".cs")


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        hard_tanh_kernel[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), BLOCK=2048, num_warps=4)
        return y
