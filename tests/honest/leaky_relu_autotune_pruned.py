"""Leaky ReLU, autotuned over configurations that are pruned first by a rule and then by a model.

Style: autotune
Task: leaky_relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages)
    for block in (512, 1024, 2048, 4096)
    for warps in (4, 8)
    for stages in (1, 2)
]


def fit(configs, named_args, **kwargs):
    """Leave out blocks that are larger than the tensor, and threads with more than 32 elements."""
    n = named_args["n"]
    return [
        c for c in configs if c.kwargs["BLOCK"] <= max(n, 512) and c.kwargs["BLOCK"] <= 1024 * c.num_warps
    ]


def model(x_ptr, y_ptr, n, slope, BLOCK, num_warps, num_stages, **kwargs):
    return abs(BLOCK / (32 * num_warps) - 8) + 0.01 * num_stages


@triton.autotune(
    configs=CONFIGS,
    key=["n"],
    prune_configs_by={"early_config_prune": fit, "perf_model": model, "top_k": 3},
)
@triton.jit
def leaky_relu_kernel(x_ptr, y_ptr, n, slope, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.where(x >= 0, x, x * slope), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        n = x.numel()
        leaky_relu_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n, self.negative_slope)
        return y
