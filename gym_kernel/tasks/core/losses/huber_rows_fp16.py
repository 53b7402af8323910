"""Mean Huber loss of each row, float16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 2,
    "shapes": {
        "wide": {"official": {"rows": 16384, "columns": 4096}, "small": {"rows": 40, "columns": 512}},
        "narrow": {"official": {"rows": 1048576, "columns": 84}, "small": {"rows": 64, "columns": 84}},
        "odd": {"official": {"rows": 20011, "columns": 3001}, "small": {"rows": 37, "columns": 389}},
    },
    "domains": ["any", "any"],
    "tolerance": {"reduction_length": 4096},
    "flops_per_element": 335,
    "rows_independent": True,
}


class Model(nn.Module):
    """``mean_j h(x_ij - y_ij)`` with ``h(d) = d^2 / 2`` where ``|d| < 1`` and ``|d| - 1 / 2`` elsewhere.

    Computed in float32, one value for each row.
    """

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(prediction.dtype, torch.float32)
        losses = F.huber_loss(prediction.to(wide), target.to(wide), reduction="none", delta=1.0)
        return losses.mean(dim=-1).to(prediction.dtype)


rows = 16384
columns = 4096


def get_inputs() -> list[torch.Tensor]:
    target = torch.randn(rows, columns)
    # Predictions of all qualities: their errors lie on both sides of 1.
    prediction = target + 2 * torch.rand(rows, 1) * torch.randn(rows, columns)
    return [prediction.to(torch.float16), target.to(torch.float16)]


def get_init_inputs() -> list[object]:
    return []
