"""Triplet margin loss of each row, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "faces": {"official": {"rows": 65536, "dim": 512}, "small": {"rows": 48, "dim": 128}},
        "text": {"official": {"rows": 16384, "dim": 4096}, "small": {"rows": 40, "dim": 512}},
        "odd": {"official": {"rows": 50021, "dim": 999}, "small": {"rows": 37, "dim": 199}},
    },
    "domains": ["any", "any", "any"],
    "tolerance": {"reduction_length": 4096},
    "flops_per_element": 760,
    "rows_independent": True,
}


class Model(nn.Module):
    """``max(|a - p| - |a - n| + 1, 0)`` with Euclidean distances of rows, computed in float32."""

    def forward(self, anchor: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(anchor.dtype, torch.float32)
        a, p, n = anchor.to(wide), positive.to(wide), negative.to(wide)
        near, far = ((a - other).square().sum(dim=-1).sqrt() for other in (p, n))
        return (near - far + 1).clamp(min=0).to(anchor.dtype)


rows = 65536
dim = 512


def get_inputs() -> list[torch.Tensor]:
    anchor = torch.randn(rows, dim)
    positive, negative = (anchor + torch.rand(rows, 1) * torch.randn(rows, dim) for _ in range(2))
    return [rows_of.to(torch.bfloat16) for rows_of in (anchor, positive, negative)]


def get_init_inputs() -> list[object]:
    return []
