"""Log of the sum of exponentials of each row, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "vocabulary": {"official": {"rows": 4096, "columns": 32000}, "small": {"rows": 40, "columns": 1000}},
        "narrow": {"official": {"rows": 524288, "columns": 128}, "small": {"rows": 64, "columns": 128}},
        "odd": {"official": {"rows": 1999, "columns": 50257}, "small": {"rows": 33, "columns": 1571}},
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 50257},
    "flops_per_element": 383,
    "rows_independent": True,
}


class Model(nn.Module):
    """``y_i = log(sum_j exp(x_ij))``.

    Without overflow: ``m + log(sum_j exp(x_ij - m))`` with the row's maximum ``m``.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(x, dim=-1)


rows = 4096
columns = 32000


def get_inputs() -> list[torch.Tensor]:
    return [2 * torch.randn(rows, columns) + 3 * torch.randn(rows, 1)]


def get_init_inputs() -> list[object]:
    return []
