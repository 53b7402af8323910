"""Rotary embedding on halves that torch splits into views; the kernel gets their strides.

Style: strided views
Task: rotary_embedding_bf16
Device: any
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rotate_kernel(
    first_ptr,
    second_ptr,
    cos_ptr,
    sin_ptr,
    y1_ptr,
    y2_ptr,
    length,
    heads,
    half,
    stride,
    HEADS: tl.constexpr,
    HALF: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    h = tl.arange(0, HEADS)[:, None]
    j = tl.arange(0, HALF)[None, :]
    mask = (h < heads) & (j < half)
    at = (token * heads + h) * stride + j
    a = tl.load(first_ptr + at, mask=mask).to(tl.float32)
    b = tl.load(second_ptr + at, mask=mask).to(tl.float32)
    angle = token % length * half + j
    cos = tl.load(cos_ptr + angle, mask=j < half).to(tl.float32)
    sin = tl.load(sin_ptr + angle, mask=j < half).to(tl.float32)
    tl.store(y1_ptr + at, (a * cos - b * sin).to(tl.bfloat16), mask=mask)
    tl.store(y2_ptr + at, (b * cos + a * sin).to(tl.bfloat16), mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x, cos, sin):
        batch, length, heads, dim = x.shape
        y = torch.empty_like(x)
        halves = x.chunk(2, dim=-1)
        results = y.tensor_split(2, dim=-1)
        rotate_kernel[(batch * length,)](
            *halves,
            cos,
            sin,
            *results,
            length,
            heads,
            dim // 2,
            x.stride(2),
            HEADS=triton.next_power_of_2(heads),
            HALF=triton.next_power_of_2(dim // 2),
        )
        return y
