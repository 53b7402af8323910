"""Matrix product over a short inner dimension, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "rank32": {"official": {"m": 8192, "k": 32, "n": 8192}, "small": {"m": 56, "k": 32, "n": 72}},
        "rank16": {"official": {"m": 16384, "k": 16, "n": 4096}, "small": {"m": 64, "k": 16, "n": 56}},
        "odd": {"official": {"m": 7001, "k": 24, "n": 9002}, "small": {"m": 53, "k": 24, "n": 75}},
    },
    "domains": ["any", "any"],
    "tolerance": {"reduction_length": 32},
    "flops_per_element": 0,
}


class Model(nn.Module):
    """``c = a @ b`` where writing ``c`` takes longer than computing it, as with low-rank updates."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


m = 8192
k = 32
n = 8192


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(m, k, dtype=torch.bfloat16), torch.randn(k, n, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
