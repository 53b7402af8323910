"""Linear layer with a residual added in its epilogue, float16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "attention_output": {
            "official": {"rows": 8192, "in_features": 4096, "out_features": 4096},
            "small": {"rows": 40, "in_features": 80, "out_features": 72},
        },
        "mlp_down": {
            "official": {"rows": 4096, "in_features": 14336, "out_features": 4096},
            "small": {"rows": 32, "in_features": 224, "out_features": 64},
        },
        "odd": {
            "official": {"rows": 6007, "in_features": 2000, "out_features": 3000},
            "small": {"rows": 43, "in_features": 56, "out_features": 75},
        },
    },
    "domains": ["any", "any"],
    "tolerance": {"reduction_length": 14336},
    "flops_per_element": 0,
    "rows_independent": True,
}


class Model(nn.Module):
    """``residual + x @ weight.T``, summed in float32 and rounded to float16 once."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        weight = torch.randn(out_features, in_features) * in_features**-0.5
        self.weight = nn.Parameter(weight.half())

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return torch.addmm(residual, x, self.weight.T)


rows = 8192
in_features = 4096
out_features = 4096


def get_inputs() -> list[torch.Tensor]:
    x = torch.randn(rows, in_features, dtype=torch.float16)
    residual = torch.randn(rows, out_features, dtype=torch.float16)
    return [x, residual]


def get_init_inputs() -> list[object]:
    return [in_features, out_features]
