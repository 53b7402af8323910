"""Residual add and RMS norm in one, with both results, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "llm": {"official": {"rows": 16384, "dim": 4096}, "small": {"rows": 16, "dim": 384}},
        "wide": {"official": {"rows": 4096, "dim": 16384}, "small": {"rows": 4, "dim": 2048}},
        "odd": {"official": {"rows": 20011, "dim": 2999}, "small": {"rows": 23, "dim": 299}},
    },
    "domains": ["any", "any"],
    "tolerance": {"reduction_length": 16384},
    "flops_per_element": 2.5,
    "rows_independent": True,
}


class Model(nn.Module):
    """``h = x + residual`` and ``y = h / sqrt(mean(h^2) + 1e-6) * weight``; returns ``y`` and ``h``.

    Computed in float32, the mean over a row; ``h`` is rounded on its way out only.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(dim, dtype=torch.bfloat16) + 0.5)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wide = torch.promote_types(x.dtype, torch.float32)
        total = x.to(wide) + residual.to(wide)
        scale = torch.rsqrt(total.square().mean(dim=-1, keepdim=True) + 1e-6)
        return (total * scale * self.weight).to(x.dtype), total.to(x.dtype)


rows = 16384
dim = 4096


def get_inputs() -> list[torch.Tensor]:
    size = torch.rand(rows, 1) * 2 + 0.25
    return [(torch.randn(rows, dim) * size).to(torch.bfloat16) for _ in range(2)]


def get_init_inputs() -> list[object]:
    return [dim]
