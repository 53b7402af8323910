"""Exponential moving average of a tensor with a rate for each row, float32."""

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {
        "square": {"official": {"rows": 8192, "columns": 8192}, "small": {"rows": 16, "columns": 512}},
        "embedding": {"official": {"rows": 128256, "columns": 512}, "small": {"rows": 61, "columns": 128}},
        "odd": {"official": {"rows": 7919, "columns": 6007}, "small": {"rows": 23, "columns": 251}},
    },
    "domains": ["any", "any", [0.0, 1.0]],
    "flops_per_element": 3,
    "rows_independent": True,
}


class Model(nn.Module):
    """``average + rate * (value - average)`` with one ``rate`` in [0, 1] for each row."""

    def forward(self, average: torch.Tensor, value: torch.Tensor, rate: torch.Tensor) -> torch.Tensor:
        return average + rate[:, None] * (value - average)


rows = 8192
columns = 8192


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns), torch.randn(rows, columns), torch.rand(rows)]


def get_init_inputs() -> list[object]:
    return []
