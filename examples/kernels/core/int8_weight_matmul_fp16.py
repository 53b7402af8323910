"""Linear layer with int8 weights on tensor cores in Triton: weights stay int8 until they are in registers.

The product is computed transposed, weights first: the tensor cores take their first operand from registers, where the
weights have just been widened. What is exact in float16 is only the bare int8; the scale comes in at the end.
"""

import math

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def int8_weight_matmul_kernel(
    x_ptr,
    weight_ptr,
    scale_ptr,
    y_ptr,
    rows,
    features,
    outputs,
    BLOCK_OUT: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN_K: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    # What the compiler must know to load several values at once: sizes are multiples of ALIGNED.
    features = features // ALIGNED * ALIGNED
    outputs = outputs // ALIGNED * ALIGNED

    # Tiles that run at the same time share weights and rows of x, which the L2 then holds.
    tiles_out = tl.cdiv(outputs, BLOCK_OUT)
    tiles_rows = tl.cdiv(rows, BLOCK_ROWS)
    group = tl.program_id(0) // (GROUP * tiles_rows)
    within = tl.program_id(0) % (GROUP * tiles_rows)
    size_of_group = min(tiles_out - group * GROUP, GROUP)
    out = (group * GROUP + within % size_of_group) * BLOCK_OUT + tl.arange(0, BLOCK_OUT)
    row = within // size_of_group * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)

    # Beyond the edge the last weights and rows are read again; only the store needs a mask then.
    steps = tl.arange(0, BLOCK_K)
    weight = weight_ptr + tl.minimum(out, outputs - 1)[:, None].to(tl.int64) * features + steps[None, :]
    x = x_ptr + tl.minimum(row, rows - 1)[None, :].to(tl.int64) * features + steps[:, None]

    total = tl.zeros((BLOCK_OUT, BLOCK_ROWS), tl.float32)
    for start in range(0, features, BLOCK_K):
        if EVEN_K:
            weight_part = tl.load(weight)
            x_part = tl.load(x)
        else:
            left = steps < features - start
            weight_part = tl.load(weight, mask=left[None, :], other=0)
            x_part = tl.load(x, mask=left[:, None], other=0.0)
        total = tl.dot(weight_part.to(x_part.dtype), x_part, total)
        weight += BLOCK_K
        x += BLOCK_K

    scale = tl.load(scale_ptr + out, mask=out < outputs, other=0.0).to(tl.float32)
    y = tl.trans(total * scale[:, None])
    at = y_ptr + row[:, None].to(tl.int64) * outputs + out[None, :]
    tl.store(at, y.to(y_ptr.dtype.element_ty), mask=(row[:, None] < rows) & (out[None, :] < outputs))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
        (rows, features), outputs = x.shape, weight.shape[0]
        y = torch.empty((rows, outputs), dtype=x.dtype, device=x.device)
        # Few rows: small tiles of weights with long steps, because all that counts is to keep the memory busy.
        decode = rows <= 16
        block_out, block_rows, block_k = (64, 16, 128) if decode else (128, 256, 64)
        tiles = triton.cdiv(outputs, block_out) * triton.cdiv(rows, block_rows)
        int8_weight_matmul_kernel[(tiles,)](
            x,
            weight,
            scale,
            y,
            rows,
            features,
            outputs,
            BLOCK_OUT=block_out,
            BLOCK_ROWS=block_rows,
            BLOCK_K=block_k,
            GROUP=8,
            EVEN_K=features % block_k == 0,
            ALIGNED=math.gcd(features, outputs, 16),
            num_warps=4 if decode else 8,
            num_stages=5 if decode else 4,
        )
        return y
