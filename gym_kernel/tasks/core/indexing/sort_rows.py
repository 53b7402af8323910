"""Stable sort of short rows with the order of their elements, float32."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "n64": {"official": {"rows": 262144, "columns": 64}, "small": {"rows": 40, "columns": 64}},
        "n128": {"official": {"rows": 131072, "columns": 128}, "small": {"rows": 24, "columns": 128}},
        "odd": {"official": {"rows": 200003, "columns": 50}, "small": {"rows": 43, "columns": 50}},
    },
    # The outputs are copies or indices: values may be of any size, and no number stands for infinity.
    "domains": [[-1e29, 1e29]],
    "flops_per_element": 1,
    "rows_independent": True,
}


class Model(nn.Module):
    """Each row in ascending order, and the column (int32) that each value came from; equal values keep their order."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, order = torch.sort(x, dim=-1, stable=True)
        return values, order.int()


rows = 262144
columns = 64


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
