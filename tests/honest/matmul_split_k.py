"""Matrix product by split-K: partial products in a workspace, added up by a second kernel in a fixed order.

Style: split-K
Task: matmul
Device: any
"""

import torch
import triton
import triton.language as tl

SPLITS = 4


@triton.jit
def partial_kernel(
    a_ptr, b_ptr, p_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLITS: tl.constexpr
):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    each = tl.cdiv(tl.cdiv(k, SPLITS), BK) * BK
    total = tl.zeros((BM, BN), tl.float32)
    last = tl.minimum(part * each + each, k)
    for start in range(part * each, last, BK):
        c = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + i[:, None] * k + c[None, :], mask=(i[:, None] < m) & (c[None, :] < last), other=0.0
        )
        b = tl.load(
            b_ptr + c[:, None] * n + j[None, :], mask=(c[:, None] < last) & (j[None, :] < n), other=0.0
        )
        total = tl.dot(a, b, total, input_precision="ieee")
    at = part.to(tl.int64) * m * n + i[:, None] * n + j[None, :]
    tl.store(p_ptr + at, total, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def add_kernel(p_ptr, y_ptr, count, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for s in tl.static_range(SPLITS):
        total += tl.load(p_ptr + s * count + at, mask=at < count, other=0.0)
    tl.store(y_ptr + at, total, mask=at < count)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        partial = torch.empty((SPLITS, m, n), dtype=torch.float32, device=a.device)
        y = torch.empty((m, n), dtype=a.dtype, device=a.device)
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 64), SPLITS)
        partial_kernel[grid](a, b, partial, m, n, k, BM=64, BN=64, BK=32, SPLITS=SPLITS, num_warps=4)
        add_kernel[(triton.cdiv(m * n, 4096),)](partial, y, m * n, SPLITS=SPLITS, BLOCK=4096)
        return y
