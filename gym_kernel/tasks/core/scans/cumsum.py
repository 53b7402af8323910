"""Cumulative sum along rows, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "square": {"official": {"rows": 8192, "length": 8192}, "small": {"rows": 4, "length": 2048}},
        "long": {"official": {"rows": 512, "length": 131072}, "small": {"rows": 4, "length": 4099}},
        "narrow": {"official": {"rows": 524288, "length": 100}, "small": {"rows": 64, "length": 100}},
        "odd": {"official": {"rows": 10007, "length": 5003}, "small": {"rows": 23, "length": 311}},
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 131072},
    "flops_per_element": 0.99,
    "rows_independent": True,
}


class Model(nn.Module):
    """``y_t = x_0 + ... + x_t`` in each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(dim=-1)


rows = 8192
length = 8192


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, length)]


def get_init_inputs() -> list[object]:
    return []
