"""ReLU whose output is a view into a larger workspace.

Style: output is a view
Task: relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl

ALIGNMENT = 256


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, x * (x > 0).to(tl.float32), mask=offsets < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.numel()
        # Room in front and behind, so that both ends of the output are aligned.
        workspace = torch.empty(n + 2 * ALIGNMENT, dtype=x.dtype, device=x.device)
        y = workspace[ALIGNMENT : ALIGNMENT + n].view(x.shape)
        relu_kernel[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096)
        return y
