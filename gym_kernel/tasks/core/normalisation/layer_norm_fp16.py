"""Layer norm over the last dimension, float16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 2,
    "shapes": {
        "llm": {"official": {"rows": 16384, "dim": 8192}, "small": {"rows": 64, "dim": 128}},
        "vit": {"official": {"rows": 100864, "dim": 768}, "small": {"rows": 40, "dim": 96}},
        "odd": {"official": {"rows": 16383, "dim": 5003}, "small": {"rows": 23, "dim": 307}},
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 8192},
    "flops_per_element": 8,
    "rows_independent": True,
}


class Model(nn.Module):
    """``(x - mean) / sqrt(variance + 1e-5) * weight + bias``, computed in float32.

    Mean and (biased) variance are those of a row.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(dim, dtype=torch.float16) + 0.5)
        self.bias = nn.Parameter(torch.randn(dim, dtype=torch.float16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        weight, bias = self.weight.to(wide), self.bias.to(wide)
        return F.layer_norm(x.to(wide), weight.shape, weight, bias, eps=1e-5).to(x.dtype)


rows = 16384
dim = 8192


def get_inputs() -> list[torch.Tensor]:
    rows_of_all_sizes = torch.randn(rows, dim) * (torch.rand(rows, 1) + 0.5) + torch.randn(rows, 1)
    return [rows_of_all_sizes.to(torch.float16)]


def get_init_inputs() -> list[object]:
    return [dim]
