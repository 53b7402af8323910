"""Mean and variance of each row, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "llm": {"official": {"rows": 16384, "columns": 8192}, "small": {"rows": 48, "columns": 512}},
        "wide": {"official": {"rows": 512, "columns": 262144}, "small": {"rows": 20, "columns": 3001}},
        "odd": {"official": {"rows": 30011, "columns": 3001}, "small": {"rows": 41, "columns": 301}},
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 262144},
    "flops_per_element": 600,
    "rows_independent": True,
}


class Model(nn.Module):
    """``m_i = sum_j x_ij / n`` and ``v_i = sum_j (x_ij - m_i)^2 / (n - 1)``; returns both.

    The mean may be large beside the deviations: ``mean(x^2) - mean(x)^2`` loses its digits there.
    """

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        variance, mean = torch.var_mean(x, dim=-1, correction=1)
        return mean, variance


rows = 16384
columns = 8192


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns) * (torch.rand(rows, 1) + 0.5) + torch.randn(rows, 1)]


def get_init_inputs() -> list[object]:
    return []
