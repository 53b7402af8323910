"""Causal attention on tensor cores in Triton: the softmax is taken online, so that no score reaches memory.

Dao, "FlashAttention-2", 2023. Keys that a whole block of queries sees need no mask; the others are done last.
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def attend(
    q,
    k_ptr,
    v_ptr,
    position,
    state,
    first,
    last,
    scale,
    DIAGONAL: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Add the keys from ``first`` to ``last`` to the state: the output so far, its weights' sum, the maximum."""
    total, weight_sum, maximum = state
    lanes = tl.arange(0, BLOCK_N)
    feature = tl.arange(0, DIM)
    for start in range(first, last, BLOCK_N):
        key = start + lanes
        k_block = k_ptr + key[None, :] * DIM + feature[:, None]
        v_block = v_ptr + key[:, None] * DIM + feature[None, :]
        if DIAGONAL:
            k = tl.load(k_block, mask=key[None, :] < last, other=0.0)
            v = tl.load(v_block, mask=key[:, None] < last, other=0.0)
            scores = tl.dot(q, k)
            scores = tl.where(position[:, None] >= key[None, :], scores, float("-inf"))
        else:
            k = tl.load(k_block)
            v = tl.load(v_block)
            scores = tl.dot(q, k)
        higher = tl.maximum(maximum, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - higher[:, None])
        shrink = tl.exp2(maximum - higher)
        weight_sum = weight_sum * shrink + tl.sum(weights, axis=1)
        total = tl.dot(weights.to(v.dtype), v, total * shrink[:, None])
        maximum = higher
    return total, weight_sum, maximum


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 128}, num_warps=8, num_stages=2),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=8, num_stages=3),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4, num_stages=3),
    ],
    key=["queries", "keys", "DIM"],
)
@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    y_ptr,
    queries,
    keys,
    scale,
    DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    # The blocks with the most keys go first, so that the short ones fill the end.
    block = tl.num_programs(1) - 1 - tl.program_id(1)
    # 64-bit: byte offsets of a large tensor do not fit into 32 bits.
    head = tl.program_id(0).to(tl.int64)
    query = block * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets = (head * queries + query[:, None]) * DIM + tl.arange(0, DIM)[None, :]
    mask = query[:, None] < queries
    q = tl.load(q_ptr + offsets, mask=mask, other=0.0)

    total = tl.zeros((BLOCK_M, DIM), tl.float32)
    weight_sum = tl.zeros((BLOCK_M,), tl.float32)
    maximum = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    state = (total, weight_sum, maximum)
    k_ptr += head * keys * DIM
    v_ptr += head * keys * DIM
    # The last query stands at the last key.
    position = query + (keys - queries)
    first = block * BLOCK_M + (keys - queries)
    seen_by_all = (first + 1) // BLOCK_N * BLOCK_N
    end = min(first + BLOCK_M, keys)
    state = attend(q, k_ptr, v_ptr, position, state, 0, seen_by_all, scale, False, DIM, BLOCK_N)
    state = attend(q, k_ptr, v_ptr, position, state, seen_by_all, end, scale, True, DIM, BLOCK_N)

    total, weight_sum, maximum = state
    y = total / weight_sum[:, None]
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        y = torch.empty_like(q)
        batch, heads, queries, dim = q.shape
        # exp2 is what the hardware has: exp(x) is exp2(x * log2(e)).
        scale = dim**-0.5 * 1.4426950408889634

        def grid(meta):
            return batch * heads, triton.cdiv(queries, meta["BLOCK_M"])

        attention_kernel[grid](q, k, v, y, queries, k.shape[2], scale, DIM=dim)
        return y
