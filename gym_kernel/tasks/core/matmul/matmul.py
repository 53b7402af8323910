"""Matrix product of two square matrices, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "square": {"official": {"m": 4096, "k": 4096, "n": 4096}, "small": {"m": 48, "k": 72, "n": 80}},
        "deep": {"official": {"m": 2048, "k": 8192, "n": 2048}, "small": {"m": 40, "k": 150, "n": 52}},
        "odd": {"official": {"m": 3001, "k": 2999, "n": 3003}, "small": {"m": 37, "k": 61, "n": 67}},
    },
    "domains": ["any", "any"],
    "tolerance": {"reduction_length": 8192},
    "flops_per_element": 0,
}


class Model(nn.Module):
    """``c[i, j] = sum_l a[i, l] * b[l, j]`` in full float32: TF32 is not accurate enough."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


m = 4096
k = 4096
n = 4096


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs() -> list[object]:
    return []
