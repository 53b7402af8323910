"""Rows divided by their Euclidean norm, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "embeddings": {"official": {"rows": 65536, "dim": 1024}, "small": {"rows": 40, "dim": 128}},
        "long": {"official": {"rows": 2048, "dim": 32768}, "small": {"rows": 6, "dim": 1500}},
        "odd": {"official": {"rows": 50021, "dim": 999}, "small": {"rows": 29, "dim": 199}},
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 32768},
    "flops_per_element": 3,
    "rows_independent": True,
}


class Model(nn.Module):
    """``x / sqrt(sum(x^2) + 1e-6)``, the sum over a row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + 1e-6)


rows = 65536
dim = 1024


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, dim) * torch.exp(torch.randn(rows, 1))]


def get_init_inputs() -> list[object]:
    return []
