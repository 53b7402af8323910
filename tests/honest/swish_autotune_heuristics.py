"""Swish with heuristics under an autotuner.

Style: autotune
Task: swish
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


def configurations():
    return [
        triton.Config({"BLOCK": 1024, "UNROLL": 1}, num_warps=4),
        triton.Config({"BLOCK": 1024, "UNROLL": 4}, num_warps=4),
        triton.Config({"BLOCK": 4096, "UNROLL": 1}, num_warps=8),
    ]


@triton.autotune(configs=configurations(), key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % (args["BLOCK"] * args["UNROLL"]) == 0})
@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, UNROLL: tl.constexpr, EVEN: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * (BLOCK * UNROLL)
    for i in tl.static_range(UNROLL):
        offsets = start + i * BLOCK + tl.arange(0, BLOCK)
        if EVEN:
            x = tl.load(x_ptr + offsets)
            tl.store(y_ptr + offsets, x * tl.sigmoid(x))
        else:
            x = tl.load(x_ptr + offsets, mask=offsets < n)
            tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=offsets < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        n = x.numel()
        swish_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"] * meta["UNROLL"]),)](x, y, n)
        return y
