"""4-bit weights unpacked in registers: even and odd columns multiply the low and the high nibbles.

Style: two dots a tile
Task: int4_weight_matmul_bf16
Device: any
"""

import torch
import triton
import triton.language as tl

GROUP = 32


@triton.jit
def product_kernel(
    x_ptr, w_ptr, s_ptr, y_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr
):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    half = tl.arange(0, GROUP // 2)
    total = tl.zeros((BM, BN), tl.float32)
    for group in range(0, k // GROUP):
        column = group * GROUP + 2 * half
        even = tl.load(x_ptr + i[:, None] * k + column[None, :], mask=i[:, None] < m, other=0.0)
        odd = tl.load(x_ptr + i[:, None] * k + column[None, :] + 1, mask=i[:, None] < m, other=0.0)
        byte = tl.load(
            w_ptr + j[None, :].to(tl.int64) * (k // 2) + (group * (GROUP // 2) + half)[:, None],
            mask=j[None, :] < n,
            other=0,
        )
        s = tl.load(s_ptr + j * (k // GROUP) + group, mask=j < n, other=0.0).to(tl.float32)[None, :]
        low = (((byte & 15).to(tl.float32) - 8) * s).to(tl.bfloat16)
        high = (((byte >> 4).to(tl.float32) - 8) * s).to(tl.bfloat16)
        total = tl.dot(even, low, total)
        total = tl.dot(odd, high, total)
    tl.store(
        y_ptr + i[:, None] * n + j[None, :], total.to(tl.bfloat16), mask=(i[:, None] < m) & (j[None, :] < n)
    )


class ModelNew(torch.nn.Module):
    def forward(self, x, packed, scale):
        (m, k), n = x.shape, packed.shape[0]
        y = torch.empty(m, n, dtype=x.dtype, device=x.device)
        product_kernel[(triton.cdiv(m, 16), triton.cdiv(n, 64))](
            x, packed, scale, y, m, n, k, BM=16, BN=64, GROUP=GROUP
        )
        return y
