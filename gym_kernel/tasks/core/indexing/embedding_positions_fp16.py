"""Token embedding lookup plus position embedding, float16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 1,
    "shapes": {
        "gpt": {
            "official": {"batch": 64, "length": 1024, "vocabulary": 8192, "dim": 768},
            "small": {"batch": 3, "length": 14, "vocabulary": 40, "dim": 130},
        },
        "wide": {
            "official": {"batch": 8, "length": 4096, "vocabulary": 4096, "dim": 2048},
            "small": {"batch": 2, "length": 10, "vocabulary": 18, "dim": 260},
        },
        "odd": {
            "official": {"batch": 33, "length": 1001, "vocabulary": 5003, "dim": 1000},
            "small": {"batch": 3, "length": 13, "vocabulary": 31, "dim": 101},
        },
    },
    "domains": ["fixed", "any", "any"],
    "flops_per_element": 1,
}


class Model(nn.Module):
    """``y[b, t] = table[tokens[b, t]] + positions[t]``."""

    def forward(self, tokens: torch.Tensor, table: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return F.embedding(tokens, table) + positions


batch = 64
length = 1024
vocabulary = 8192
dim = 768


def get_inputs() -> list[torch.Tensor]:
    tokens = torch.randint(0, vocabulary, (batch, length))
    table = torch.randn(vocabulary, dim, dtype=torch.float16)
    positions = torch.randn(length, dim, dtype=torch.float16)
    return [tokens, table, positions]


def get_init_inputs() -> list[object]:
    return []
