"""Addition of rows into rows named by a repeating index, float32."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "graph": {
            "official": {"rows": 8192, "count": 131072, "dim": 256},
            "small": {"rows": 30, "count": 64, "dim": 90},
        },
        "few_targets": {
            "official": {"rows": 2048, "count": 65536, "dim": 512},
            "small": {"rows": 8, "count": 60, "dim": 300},
        },
        "odd": {
            "official": {"rows": 10007, "count": 90001, "dim": 301},
            "small": {"rows": 29, "count": 61, "dim": 75},
        },
    },
    "domains": ["any", "any", "fixed"],
    "tolerance": {"reduction_length": 128},
    "flops_per_element": 1,
}


class Model(nn.Module):
    """``y[r] = base[r] + sum of updates[i] over all i with index[i] == r``; ``base`` itself is left alone."""

    def forward(self, base: torch.Tensor, updates: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return base.index_add(0, index, updates)


rows = 8192
count = 131072
dim = 256


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, dim), torch.randn(count, dim), torch.randint(0, rows, (count,))]


def get_init_inputs() -> list[object]:
    return []
