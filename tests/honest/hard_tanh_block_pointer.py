"""HardTanh with block pointers where Triton still has them, and with tensor descriptors where it does not.

Style: block pointers
Task: hard_tanh
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
HAS_BLOCK_POINTERS = VERSION < (3, 7)

if HAS_BLOCK_POINTERS:

    @triton.jit
    def hard_tanh_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        x_block = tl.make_block_ptr(
            base=x_ptr,
            shape=(rows, columns),
            strides=(columns, 1),
            offsets=(tl.program_id(1) * ROWS, tl.program_id(0) * COLUMNS),
            block_shape=(ROWS, COLUMNS),
            order=(1, 0),
        )
        y_block = tl.make_block_ptr(
            base=y_ptr,
            shape=(rows, columns),
            strides=(columns, 1),
            offsets=(tl.program_id(1) * ROWS, tl.program_id(0) * COLUMNS),
            block_shape=(ROWS, COLUMNS),
            order=(1, 0),
        )
        x = tl.load(x_block, boundary_check=(0, 1), padding_option="zero")
        tl.store(y_block, tl.minimum(tl.maximum(x, -1.0), 1.0), boundary_check=(0, 1))

else:

    @triton.jit
    def hard_tanh_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        x_desc = tl.make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [ROWS, COLUMNS])
        y_desc = tl.make_tensor_descriptor(y_ptr, [rows, columns], [columns, 1], [ROWS, COLUMNS])
        at = [tl.program_id(1) * ROWS, tl.program_id(0) * COLUMNS]
        y_desc.store(at, tl.minimum(tl.maximum(x_desc.load(at), -1.0), 1.0))


def scratch(size, alignment, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        if torch.cuda.is_available() and not HAS_BLOCK_POINTERS:
            triton.set_allocator(scratch)

    def forward(self, x):
        y = torch.empty_like(x)
        rows, columns = x.shape
        hard_tanh_kernel[(triton.cdiv(columns, 256), triton.cdiv(rows, 8))](
            x, y, rows, columns, ROWS=8, COLUMNS=256
        )
        return y
