"""Decoding attention with the keys split over programs; a second kernel joins the parts by their log-sum-exp.

Style: flash decoding
Task: decode_attention_fp16
Device: any
"""

import dataclasses
import functools

import torch
import triton
import triton.language as tl


@dataclasses.dataclass(frozen=True)
class Plan:
    """How the keys are split.

    Attributes:
        parts: Programs for one head.
        block: Keys taken at once.
    """

    parts: int
    block: int = 64


@functools.cache
def plan_for(heads: int, length: int) -> Plan:
    return Plan(parts=max(1, min(triton.cdiv(length, 64), 528 // heads + 1)))


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, l_ptr, length, each, scale, DIM: tl.constexpr, BLOCK: tl.constexpr
):
    head, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    d = tl.arange(0, DIM)
    q = tl.load(q_ptr + head * DIM + d).to(tl.float32)
    top, total = -float("inf"), 0.0
    o = tl.zeros((DIM,), tl.float32)
    for start in range(part * each, tl.minimum(part * each + each, length), BLOCK):
        j = start + tl.arange(0, BLOCK)
        inside = (j < length) & (j < part * each + each)
        at = (head * length + j[:, None]) * DIM + d[None, :]
        k = tl.load(k_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
        s = tl.where(inside, tl.sum(k * q[None, :], axis=1) * scale, -float("inf"))
        new = tl.maximum(top, tl.max(s, axis=0))
        w = tl.exp(s - new)
        shrink = tl.exp(top - new)
        v = tl.load(v_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
        o = o * shrink + tl.sum(w[:, None] * v, axis=0)
        total = total * shrink + tl.sum(w, axis=0)
        top = new
    out = head * tl.num_programs(1) + part
    tl.store(o_ptr + out * DIM + d, o / tl.where(total > 0, total, 1.0))
    tl.store(l_ptr + out, tl.where(total > 0, top + tl.log(tl.where(total > 0, total, 1.0)), -float("inf")))


@triton.jit
def join_kernel(o_ptr, l_ptr, y_ptr, parts, DIM: tl.constexpr, PARTS: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    d, p = tl.arange(0, DIM), tl.arange(0, PARTS)
    lse = tl.load(l_ptr + head * parts + p, mask=p < parts, other=-float("inf"))
    w = tl.exp(lse - tl.max(lse, axis=0))
    o = tl.load(o_ptr + (head * parts + p[:, None]) * DIM + d[None, :], mask=p[:, None] < parts, other=0.0)
    tl.store(y_ptr + head * DIM + d, (tl.sum(w[:, None] * o, axis=0) / tl.sum(w, axis=0)).to(tl.float16))


class ModelNew(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        batch, heads, length, dim = k.shape
        plan = plan_for(batch * heads, length)
        parts = torch.empty(batch * heads, plan.parts, dim, device=q.device)
        lse = torch.empty(batch * heads, plan.parts, device=q.device)
        y = torch.empty_like(q)
        each = triton.cdiv(length, plan.parts)
        part_kernel[(batch * heads, plan.parts)](
            q, k, v, parts, lse, length, each, dim**-0.5, DIM=dim, BLOCK=plan.block
        )
        join_kernel[(batch * heads,)](
            parts, lse, y, plan.parts, DIM=dim, PARTS=max(2, triton.next_power_of_2(plan.parts))
        )
        return y
