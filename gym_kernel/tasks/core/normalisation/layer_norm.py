"""Layer norm over the last dimension, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 2,
    "shapes": {
        "llm": {"official": {"rows": 16384, "dim": 4096}, "small": {"rows": 16, "dim": 384}},
        "narrow": {"official": {"rows": 262144, "dim": 192}, "small": {"rows": 48, "dim": 192}},
        "odd": {"official": {"rows": 16383, "dim": 3001}, "small": {"rows": 23, "dim": 301}},
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 4096},
    "flops_per_element": 8,
    "rows_independent": True,
}


class Model(nn.Module):
    """``(x - mean) / sqrt(variance + 1e-5) * weight + bias``, mean and (biased) variance over a row."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(dim) + 0.5)
        self.bias = nn.Parameter(torch.randn(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, eps=1e-5)


rows = 16384
dim = 4096


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, dim) * (torch.rand(rows, 1) + 0.5) + torch.randn(rows, 1)]


def get_init_inputs() -> list[object]:
    return [dim]
