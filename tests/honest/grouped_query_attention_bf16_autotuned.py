"""Grouped-query attention, autotuned over several configurations, the group found by a division of the head.

Style: autotune with several configs
Task: grouped_query_attention_bf16
Device: any
"""

import math

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
CONFIGS = [
    triton.Config({"BM": bm, "BN": bn}, num_warps=warps, num_stages=stages)
    for bm, bn, warps, stages in ((64, 32, 4, 2), (64, 64, 4, 3), (128, 64, 8, 2))
]


@triton.autotune(configs=CONFIGS, key=["queries", "keys"])
@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    y_ptr,
    heads,
    groups,
    queries,
    keys,
    scale,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """One block of queries of one head."""
    head = tl.program_id(1).to(tl.int64)
    group = head // heads * groups + head % heads // (heads // groups)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    at = (head * queries + i[:, None]) * D + d[None, :]
    q = tl.load(q_ptr + at, mask=i[:, None] < queries, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    y = tl.zeros((BM, D), tl.float32)
    for start in range(0, keys, BN):
        j = start + tl.arange(0, BN)
        k = tl.load(k_ptr + (group * keys + j[None, :]) * D + d[:, None], mask=j[None, :] < keys, other=0.0)
        s = tl.dot(q, k) * (scale * LOG2_E)
        s = tl.where(j[None, :] < keys, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        w = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        v = tl.load(v_ptr + (group * keys + j[:, None]) * D + d[None, :], mask=j[:, None] < keys, other=0.0)
        y = tl.dot(w.to(tl.bfloat16), v, y * shrink[:, None])
        total = total * shrink + tl.sum(w, 1)
        top = new
    tl.store(y_ptr + at, (y / total[:, None]).to(tl.bfloat16), mask=i[:, None] < queries)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        batch, heads, queries, dim = q.shape
        y = torch.empty_like(q)
        grid = lambda meta: (triton.cdiv(queries, meta["BM"]), batch * heads)
        attention_kernel[grid](q, k, v, y, heads, k.shape[1], queries, k.shape[2], 1 / math.sqrt(dim), D=dim)
        return y
