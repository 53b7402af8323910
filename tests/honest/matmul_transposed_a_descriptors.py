"""Product with the first operand stored transposed, by tensor descriptors made on the device, in IEEE float32.

Style: device-side tensor descriptors, padded operands
Task: matmul_transposed_a
Device: any
"""

import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(
    a_ptr, b_ptr, y_ptr, m, n, k, sa, sb, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    a_desc = tl.make_tensor_descriptor(a_ptr, [k, m], [sa, 1], [BK, BM])
    b_desc = tl.make_tensor_descriptor(b_ptr, [k, n], [sb, 1], [BK, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        a = a_desc.load([start, i])
        b = b_desc.load([start, j])
        total = tl.dot(tl.trans(a), b, total, input_precision="ieee")
    rows = i + tl.arange(0, BM)
    columns = j + tl.arange(0, BN)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y_ptr + rows[:, None] * n + columns[None, :], total, mask=mask)


def allocate(size, alignment, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


def aligned(x):
    """The same matrix with rows that start at multiples of 16 bytes."""
    rows, columns = x.shape
    if columns % 4 == 0:
        return x
    wide = torch.empty(rows, (columns + 3) // 4 * 4, dtype=x.dtype, device=x.device)
    wide[:, :columns].copy_(x)
    return wide


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        if torch.cuda.is_available():
            triton.set_allocator(allocate)

    def forward(self, a, b):
        (k, m), n = a.shape, b.shape[1]
        y = torch.empty(m, n, dtype=a.dtype, device=a.device)
        a, b = aligned(a), aligned(b)
        product_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
            a, b, y, m, n, k, a.stride(0), b.stride(0), BM=64, BN=64, BK=32
        )
        return y
