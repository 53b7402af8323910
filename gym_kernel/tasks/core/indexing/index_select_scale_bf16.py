"""Gather of rows by index, each times a scale of its own, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {
        "dispatch": {
            "official": {"rows": 16384, "dim": 2048, "count": 32768},
            "small": {"rows": 24, "dim": 130, "count": 50},
        },
        "narrow": {
            "official": {"rows": 200000, "dim": 64, "count": 800000},
            "small": {"rows": 30, "dim": 64, "count": 62},
        },
        "odd": {
            "official": {"rows": 15013, "dim": 1501, "count": 40009},
            "small": {"rows": 19, "dim": 111, "count": 43},
        },
    },
    "domains": ["any", "fixed", "any"],
    "flops_per_element": 1,
}


class Model(nn.Module):
    """``y[i] = scale[i] * x[index[i]]``."""

    def forward(self, x: torch.Tensor, index: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch.index_select(x, 0, index) * scale[:, None]


rows = 16384
dim = 2048
count = 32768


def get_inputs() -> list[torch.Tensor]:
    x = torch.randn(rows, dim, dtype=torch.bfloat16)
    index = torch.randperm(count) % rows
    scale = torch.randn(count, dtype=torch.bfloat16)
    return [x, index, scale]


def get_init_inputs() -> list[object]:
    return []
