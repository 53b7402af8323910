"""Sum of each row, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "square": {"official": {"rows": 16384, "columns": 8192}, "small": {"rows": 48, "columns": 512}},
        "wide": {"official": {"rows": 128, "columns": 1048576}, "small": {"rows": 16, "columns": 3001}},
        "narrow": {"official": {"rows": 1048576, "columns": 96}, "small": {"rows": 64, "columns": 96}},
        "odd": {"official": {"rows": 10007, "columns": 12289}, "small": {"rows": 37, "columns": 389}},
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 1048576},
    "flops_per_element": 95,
    "rows_independent": True,
}


class Model(nn.Module):
    """``y_i = sum_j x_ij``."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(dim=-1)


rows = 16384
columns = 8192


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
