"""Linear layer with bias and GELU in its epilogue, bfloat16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 3,
    "shapes": {
        "mlp": {
            "official": {"rows": 4096, "in_features": 2048, "out_features": 8192},
            "small": {"rows": 32, "in_features": 72, "out_features": 120},
        },
        "bert": {
            "official": {"rows": 16384, "in_features": 768, "out_features": 3072},
            "small": {"rows": 48, "in_features": 48, "out_features": 80},
        },
        "odd": {
            "official": {"rows": 5003, "in_features": 1000, "out_features": 4008},
            "small": {"rows": 37, "in_features": 40, "out_features": 88},
        },
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 2048},
    "flops_per_element": 8,
    "rows_independent": True,
}


class Model(nn.Module):
    """``gelu(x @ weight.T + bias)`` with ``gelu(h) = h * (1 + erf(h / sqrt(2))) / 2``; sums in float32."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        weight = torch.randn(out_features, in_features) * in_features**-0.5
        self.weight = nn.Parameter(weight.bfloat16())
        self.bias = nn.Parameter(torch.randn(out_features).bfloat16())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(F.linear(x, self.weight, self.bias))


rows = 4096
in_features = 2048
out_features = 8192


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, in_features, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [in_features, out_features]
