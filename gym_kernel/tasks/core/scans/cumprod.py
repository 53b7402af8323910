"""Cumulative product of factors near one along rows, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "returns": {"official": {"rows": 32768, "length": 2048}, "small": {"rows": 16, "length": 500}},
        "short": {"official": {"rows": 262144, "length": 250}, "small": {"rows": 48, "length": 250}},
        "odd": {"official": {"rows": 40009, "length": 1201}, "small": {"rows": 23, "length": 311}},
    },
    "domains": [[0.99, 1.01]],
    "tolerance": {"reduction_length": 2048},
    "flops_per_element": 0.99,
    "rows_independent": True,
}


class Model(nn.Module):
    """``y_t = x_0 * ... * x_t`` in each row: the growth of one unit at returns of at most one per cent."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cumprod(dim=-1)


rows = 32768
length = 2048


def get_inputs() -> list[torch.Tensor]:
    return [torch.empty(rows, length).uniform_(0.99, 1.01)]


def get_init_inputs() -> list[object]:
    return []
