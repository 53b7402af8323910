"""Swish by a fixed number of programs, each in a software-pipelined loop.

Style: num_stages loop
Task: swish
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    blocks = tl.cdiv(n, BLOCK)
    lanes = tl.arange(0, BLOCK)
    for block in tl.range(tl.program_id(0), blocks, tl.num_programs(0), num_stages=STAGES):
        offsets = block * BLOCK + lanes
        inside = offsets < n
        x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
        e = tl.exp(-tl.abs(x))
        tl.store(y_ptr + offsets, x * tl.where(x < 0.0, e, 1.0) / (1.0 + e), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.programs = 4
        if torch.cuda.is_available():
            properties = torch.cuda.get_device_properties(torch.cuda.current_device())
            self.programs = 8 * properties.multi_processor_count

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        block = 2048
        programs = min(self.programs, triton.cdiv(x.numel(), block))
        swish_kernel[(programs,)](x, y, x.numel(), BLOCK=block, STAGES=3, num_warps=8)
        return y
