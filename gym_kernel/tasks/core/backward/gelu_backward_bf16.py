"""Gradient of GELU (erf form), bfloat16."""

import math

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {
        "mlp": {"official": {"rows": 8192, "columns": 8192}, "small": {"rows": 32, "columns": 200}},
        "bert": {"official": {"rows": 32768, "columns": 3072}, "small": {"rows": 48, "columns": 96}},
        "odd": {"official": {"rows": 9001, "columns": 5003}, "small": {"rows": 37, "columns": 131}},
    },
    "domains": ["any", "any"],
    "flops_per_element": 10,
    "rows_independent": True,
}


class Model(nn.Module):
    """``grad_x = grad_y * (Phi(x) + x * phi(x))``: Phi and phi are the normal distribution and its density."""

    def forward(self, grad_y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        wide = x if x.dtype == torch.float64 else x.float()
        distribution = 0.5 * (1 + torch.erf(wide / math.sqrt(2)))
        density = torch.exp(-0.5 * wide * wide) / math.sqrt(2 * math.pi)
        return (grad_y * (distribution + wide * density)).to(x.dtype)


rows = 8192
columns = 8192


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=torch.bfloat16) for _ in range(2)]


def get_init_inputs() -> list[object]:
    return []
