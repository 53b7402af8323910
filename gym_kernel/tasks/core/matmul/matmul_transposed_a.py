"""Matrix product with the first operand stored transposed, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "weight_gradient": {
            "official": {"k": 8192, "m": 2048, "n": 2048},
            "small": {"k": 96, "m": 44, "n": 60},
        },
        "square": {"official": {"k": 4096, "m": 4096, "n": 2048}, "small": {"k": 64, "m": 48, "n": 56}},
        "odd": {"official": {"k": 5001, "m": 2003, "n": 3001}, "small": {"k": 77, "m": 39, "n": 59}},
    },
    "domains": ["any", "any"],
    "tolerance": {"reduction_length": 8192},
    "flops_per_element": 0,
}


class Model(nn.Module):
    """``c[i, j] = sum_l a[l, i] * b[l, j]`` in full float32: TF32 is not accurate enough."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.T @ b


k = 8192
m = 2048
n = 2048


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(k, m), torch.randn(k, n)]


def get_init_inputs() -> list[object]:
    return []
