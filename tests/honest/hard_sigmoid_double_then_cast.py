"""HardSigmoid computed and stored in float64 for a few rows at a time, then cast into the output.

Style: wider precision
Task: hard_sigmoid
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def hard_sigmoid_kernel(x_ptr, wide_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float64)
    tl.store(wide_ptr + offsets, tl.minimum(tl.maximum(x + 3.0, 0.0), 6.0) / 6.0, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        group = min(rows, 256)
        wide = torch.empty((group, columns), dtype=torch.float64, device=x.device)
        y = torch.empty_like(x)
        for first in range(0, rows, group):
            part = x[first : first + group]
            target = wide[: part.shape[0]]
            hard_sigmoid_kernel[(triton.cdiv(part.numel(), 4096),)](part, target, part.numel(), BLOCK=4096)
            y[first : first + group] = target.to(torch.float32)
        return y
