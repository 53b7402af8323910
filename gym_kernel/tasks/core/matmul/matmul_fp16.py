"""Matrix product of two square matrices, float16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "square": {"official": {"m": 4096, "k": 4096, "n": 4096}, "small": {"m": 48, "k": 72, "n": 80}},
        "mlp": {"official": {"m": 8192, "k": 4096, "n": 14336}, "small": {"m": 32, "k": 48, "n": 168}},
        "odd": {"official": {"m": 4104, "k": 4000, "n": 4008}, "small": {"m": 41, "k": 56, "n": 72}},
    },
    # A sum of 4,096 products of values up to 3.875 is at most 61,504: it cannot leave the range of float16.
    "domains": [[-3.875, 3.875], [-3.875, 3.875]],
    "tolerance": {"reduction_length": 4096},
    "flops_per_element": 0,
}


class Model(nn.Module):
    """``c[i, j] = sum_l a[i, l] * b[l, j]``, summed in float32 and rounded to float16 once."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


m = 4096
k = 4096
n = 4096


def get_inputs() -> list[torch.Tensor]:
    # Cut off, so that no sum can overflow.
    a = torch.randn(m, k, dtype=torch.float16).clamp(-3.875, 3.875)
    b = torch.randn(k, n, dtype=torch.float16).clamp(-3.875, 3.875)
    return [a, b]


def get_init_inputs() -> list[object]:
    return []
