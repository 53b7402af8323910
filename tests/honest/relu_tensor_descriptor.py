"""ReLU through tensor descriptors made on the device (TMA on Hopper).

Style: tensor descriptor
Task: relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_descriptor(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(
        x_ptr, shape=[rows, columns], strides=[columns, 1], block_shape=[ROWS, COLUMNS]
    )
    y_desc = tl.make_tensor_descriptor(
        y_ptr, shape=[rows, columns], strides=[columns, 1], block_shape=[ROWS, COLUMNS]
    )
    r = tl.program_id(1) * ROWS
    c = tl.program_id(0) * COLUMNS
    x = x_desc.load([r, c])
    y_desc.store([r, c], tl.maximum(x, 0.0))


def allocate(size: int, alignment: int, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.is_cuda:
            triton.set_allocator(allocate)  # descriptors live in global memory
        y = torch.empty_like(x)
        rows, columns = x.shape
        grid = (triton.cdiv(columns, 128), triton.cdiv(rows, 16))
        relu_descriptor[grid](x, y, rows, columns, ROWS=16, COLUMNS=128)
        return y
