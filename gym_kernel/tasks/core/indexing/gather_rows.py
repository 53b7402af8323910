"""Gather of rows by index, float32."""

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {
        "features": {
            "official": {"rows": 32768, "dim": 256, "count": 131072},
            "small": {"rows": 20, "dim": 100, "count": 44},
        },
        "narrow": {
            "official": {"rows": 500000, "dim": 16, "count": 2000000},
            "small": {"rows": 26, "dim": 16, "count": 150},
        },
        "odd": {
            "official": {"rows": 20011, "dim": 301, "count": 70001},
            "small": {"rows": 17, "dim": 77, "count": 41},
        },
    },
    "domains": ["any", "fixed"],
    "flops_per_element": 0,
}


class Model(nn.Module):
    """``y[i] = x[index[i]]``; every row of ``x`` is asked for at least once."""

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.index_select(x, 0, index)


rows = 32768
dim = 256
count = 131072


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, dim), torch.randperm(count) % rows]


def get_init_inputs() -> list[object]:
    return []
