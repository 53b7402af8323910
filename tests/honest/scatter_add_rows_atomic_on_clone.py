"""Rows added by atomics into a clone of the base.

Style: atomics on a clone
Task: scatter_add_rows
Device: any
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(u_ptr, index_ptr, y_ptr, dim, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index_ptr + i)
    u = tl.load(u_ptr + i * dim + c, mask=c < dim, other=0.0)
    tl.atomic_add(y_ptr + row * dim + c, u, mask=c < dim, sem="relaxed")


class ModelNew(torch.nn.Module):
    def forward(self, base, updates, index):
        y = base.clone(memory_format=torch.contiguous_format)
        count, dim = updates.shape
        add_kernel[(count, triton.cdiv(dim, 128))](updates, index, y, dim, BLOCK=128)
        return y
