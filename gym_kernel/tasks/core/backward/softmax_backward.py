"""Gradient of softmax over the last dimension, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "attention": {"official": {"rows": 65536, "columns": 1024}, "small": {"rows": 40, "columns": 140}},
        "vocabulary": {"official": {"rows": 1024, "columns": 50257}, "small": {"rows": 5, "columns": 1500}},
        "odd": {"official": {"rows": 30011, "columns": 1999}, "small": {"rows": 37, "columns": 131}},
    },
    "domains": ["any", [0.0, 1.0]],
    "tolerance": {"reduction_length": 50257},
    "flops_per_element": 4,
    "rows_independent": True,
}


class Model(nn.Module):
    """``grad_x = y * (grad_y - sum(grad_y * y))``, where ``y`` is what the softmax returned."""

    def forward(self, grad_y: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y * (grad_y - (grad_y * y).sum(dim=-1, keepdim=True))


rows = 65536
columns = 1024


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns), torch.softmax(2 * torch.randn(rows, columns), dim=-1)]


def get_init_inputs() -> list[object]:
    return []
