"""GELU (tanh form) — with comments that are not ASCII: √(2/π), x³, ≤, →, “quotes”.

Style: non-ASCII comments
Task: mingpt_gelu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl

# gelu(x) = ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))  ⇒  x·σ(2u)
α = 0.044715


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, ALPHA: tl.constexpr, BLOCK: tl.constexpr):
    # Jedes Programm berechnet BLOCK Elemente → größere Blöcke, weniger Programme.
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    s = tl.sigmoid(1.5957691216057308 * (x + ALPHA * x * x * x))  # 0 ≤ σ ≤ 1
    tl.store(y_ptr + offsets, x * s, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("éléments :", x.numel())
        y = torch.empty_like(x)
        gelu_kernel[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), ALPHA=α, BLOCK=2048)
        return y
