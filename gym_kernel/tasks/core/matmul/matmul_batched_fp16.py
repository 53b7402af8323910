"""Batched matrix product, float16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "heads": {
            "official": {"batch": 128, "m": 512, "k": 128, "n": 512},
            "small": {"batch": 3, "m": 40, "k": 24, "n": 48},
        },
        "many_small": {
            "official": {"batch": 4096, "m": 64, "k": 64, "n": 64},
            "small": {"batch": 9, "m": 16, "k": 32, "n": 24},
        },
        "odd": {
            "official": {"batch": 96, "m": 520, "k": 200, "n": 488},
            "small": {"batch": 2, "m": 37, "k": 25, "n": 51},
        },
    },
    # Products of values up to 8 can be summed in the range of float16.
    "domains": [[-8.0, 8.0], [-8.0, 8.0]],
    "tolerance": {"reduction_length": 200},
    "flops_per_element": 0,
    "rows_independent": True,
}


class Model(nn.Module):
    """``c[i] = a[i] @ b[i]`` for every matrix ``i`` of the batch, summed in float32."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.bmm(a, b)


batch = 128
m = 512
k = 128
n = 512


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, m, k, dtype=torch.float16), torch.randn(batch, k, n, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return []
