"""Cosine embedding loss of each pair of rows, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "embeddings": {"official": {"pairs": 65536, "dim": 768}, "small": {"pairs": 48, "dim": 192}},
        "long": {"official": {"pairs": 8192, "dim": 8192}, "small": {"pairs": 24, "dim": 1024}},
        "odd": {"official": {"pairs": 50021, "dim": 1001}, "small": {"pairs": 37, "dim": 301}},
    },
    "domains": ["any", "any", "fixed"],
    "tolerance": {"reduction_length": 8192},
    "flops_per_element": 1150,
    "rows_independent": True,
}


class Model(nn.Module):
    """``1 - c`` where the label is 1, ``max(c - 0.1, 0)`` where it is -1, with the cosine ``c = x.y / (|x| |y|)``."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        norms = x.square().sum(dim=-1) * y.square().sum(dim=-1)
        cosine = (x * y).sum(dim=-1) * torch.rsqrt(norms + 1e-20)
        return torch.where(label > 0, 1 - cosine, (cosine - 0.1).clamp(min=0))


pairs = 65536
dim = 768


def get_inputs() -> list[torch.Tensor]:
    x = torch.randn(pairs, dim)
    # Pairs of every likeness.
    y = x * torch.rand(pairs, 1) + torch.randn(pairs, dim) * torch.rand(pairs, 1)
    return [x, y, torch.randint(0, 2, (pairs,)) * 2 - 1]


def get_init_inputs() -> list[object]:
    return []
