"""Permutation of the columns of a matrix with a factor for each, float16."""

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {
        "wide": {"official": {"rows": 8192, "columns": 8192}, "small": {"rows": 24, "columns": 200}},
        "narrow": {"official": {"rows": 262144, "columns": 256}, "small": {"rows": 50, "columns": 96}},
        "odd": {"official": {"rows": 9001, "columns": 5003}, "small": {"rows": 37, "columns": 131}},
    },
    "domains": ["any", "fixed", "any"],
    "flops_per_element": 1,
}


class Model(nn.Module):
    """``y[i, j] = factor[j] * x[i, permutation[j]]``."""

    def forward(self, x: torch.Tensor, permutation: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        return x[:, permutation] * factor


rows = 8192
columns = 8192


def get_inputs() -> list[torch.Tensor]:
    x = torch.randn(rows, columns, dtype=torch.float16)
    permutation = torch.randperm(columns)
    factor = torch.randn(columns, dtype=torch.float16)
    return [x, permutation, factor]


def get_init_inputs() -> list[object]:
    return []
