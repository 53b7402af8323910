"""Matrix product of a tall matrix with a narrow one, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "lora": {
            "official": {"rows": 65536, "k": 1024, "rank": 32},
            "small": {"rows": 64, "k": 96, "rank": 36},
        },
        "projection": {
            "official": {"rows": 262144, "k": 256, "rank": 64},
            "small": {"rows": 56, "k": 64, "rank": 40},
        },
        "odd": {
            "official": {"rows": 100003, "k": 520, "rank": 24},
            "small": {"rows": 61, "k": 72, "rank": 40},
        },
    },
    "domains": ["any", "any"],
    "tolerance": {"reduction_length": 1024},
    "flops_per_element": 0,
}


class Model(nn.Module):
    """``y = x @ a`` with many rows and few columns, as in the first half of a LoRA adapter; sums in float32."""

    def forward(self, x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return x @ a


rows = 65536
k = 1024
rank = 32


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, k, dtype=torch.bfloat16), torch.randn(k, rank, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
