"""Top-2 routing by two rounds of maximum and lowest index, several tokens a program, both outputs as a tuple.

Style: two maxima
Task: moe_top2_routing
Device: any
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl


class Sizes(NamedTuple):
    """Tile of one program."""

    tokens: int
    experts: int


@triton.jit
def first_maximum(x, lanes):
    top = tl.max(x, axis=1)
    return top, tl.min(tl.where(x == top[:, None], lanes, 1 << 20), axis=1)


@triton.jit
def routing_kernel(x_ptr, p_ptr, e_ptr, tokens, experts, TOKENS: tl.constexpr, EXPERTS: tl.constexpr):
    token = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    lanes = tl.arange(0, EXPERTS)[None, :]
    mask = (token[:, None] < tokens) & (lanes < experts)
    x = tl.load(x_ptr + token[:, None] * experts + lanes, mask=mask, other=-float("inf"))
    x = tl.where(token[:, None] < tokens, x, 0.0)
    top, one = first_maximum(x, lanes)
    total = tl.sum(tl.exp(x - top[:, None]), axis=1)
    next_top, two = first_maximum(tl.where(lanes == one[:, None], -float("inf"), x), lanes)
    live = token < tokens
    tl.store(p_ptr + token * 2, 1.0 / total, mask=live)
    tl.store(p_ptr + token * 2 + 1, tl.exp(next_top - top) / total, mask=live)
    tl.store(e_ptr + token * 2, one.to(tl.int32), mask=live)
    tl.store(e_ptr + token * 2 + 1, two.to(tl.int32), mask=live)


class ModelNew(torch.nn.Module):
    def forward(self, logits):
        tokens, experts = logits.shape
        sizes = Sizes(tokens=16, experts=triton.next_power_of_2(experts))
        p = logits.new_empty((tokens, 2))
        e = logits.new_empty((tokens, 2), dtype=torch.int32)
        routing_kernel[(triton.cdiv(tokens, sizes.tokens),)](logits, p, e, tokens, experts, *sizes)
        return p, e
