"""Softmax with as many programs as fit the GPU, computed from the compiled kernel's registers.

Style: persistent
Task: softmax
Device: cuda
Slow: no
"""

import torch
import triton
import triton.language as tl
from triton.runtime import driver


@triton.jit
def softmax_kernel(
    out_ptr, in_ptr, in_stride, out_stride, n_rows, n_cols, BLOCK: tl.constexpr, STAGES: tl.constexpr
):
    lanes = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0)):
        source = in_ptr + row.to(tl.int64) * in_stride
        target = out_ptr + row.to(tl.int64) * out_stride
        m = -float("inf")
        s = 0.0
        for start in tl.range(0, n_cols, BLOCK, num_stages=STAGES):
            cols = start + lanes
            x = tl.load(source + cols, mask=cols < n_cols, other=-float("inf"))
            top = tl.maximum(m, tl.max(x, axis=0))
            s = s * tl.exp(m - top) + tl.sum(tl.exp(x - top), axis=0)
            m = top
        for start in tl.range(0, n_cols, BLOCK, num_stages=STAGES):
            cols = start + lanes
            x = tl.load(source + cols, mask=cols < n_cols, other=-float("inf"))
            tl.store(target + cols, tl.exp(x - m) / s, mask=cols < n_cols)


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.programs = {}

    def count_programs(self, y, x, block, stages, warps):
        device = driver.active.get_current_device()
        properties = driver.active.utils.get_device_properties(device)
        rows, columns = x.shape
        kernel = softmax_kernel.warmup(
            y,
            x,
            x.stride(0),
            y.stride(0),
            rows,
            columns,
            BLOCK=block,
            STAGES=stages,
            num_warps=warps,
            grid=(1,),
        )
        kernel._init_handles()
        registers = max(kernel.n_regs, 16) * 32 * warps
        occupancy = max(1, properties["max_num_regs"] // registers)
        if kernel.metadata.shared:
            occupancy = min(occupancy, max(1, properties["max_shared_mem"] // kernel.metadata.shared))
        return min(rows, properties["multiprocessor_count"] * occupancy)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        rows, columns = x.shape
        block, stages, warps = min(8192, triton.next_power_of_2(columns)), 2, 8
        if x.shape not in self.programs:
            self.programs[x.shape] = self.count_programs(y, x, block, stages, warps)
        softmax_kernel[(self.programs[x.shape], 1, 1)](
            y, x, x.stride(0), y.stride(0), rows, columns, BLOCK=block, STAGES=stages, num_warps=warps
        )
        return y
