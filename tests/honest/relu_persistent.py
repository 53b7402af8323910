"""ReLU with one program for every multiprocessor, each striding over the tensor.

Style: persistent
Task: relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def persistent_relu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    lanes = tl.arange(0, BLOCK)
    for start in range(pid * BLOCK, n, step):
        offsets = start + lanes
        inside = offsets < n
        x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
        tl.store(y_ptr + offsets, tl.maximum(x, 0.0), mask=inside)


def multiprocessors(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).multi_processor_count
    return 4


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        n = x.numel()
        block = 4096
        programs = min(multiprocessors(x.device) * 4, triton.cdiv(n, block))
        persistent_relu[(programs,)](x, y, n, BLOCK=block, num_warps=8)
        return y
