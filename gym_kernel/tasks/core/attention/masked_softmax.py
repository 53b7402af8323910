"""Softmax over scaled attention scores with a key mask, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "encoder": {
            "official": {"batch": 8, "heads": 16, "queries": 512, "keys": 512},
            "small": {"batch": 2, "heads": 2, "queries": 12, "keys": 75},
        },
        "long": {
            "official": {"batch": 2, "heads": 8, "queries": 512, "keys": 4096},
            "small": {"batch": 2, "heads": 2, "queries": 3, "keys": 300},
        },
        "odd": {
            "official": {"batch": 6, "heads": 12, "queries": 577, "keys": 577},
            "small": {"batch": 3, "heads": 2, "queries": 9, "keys": 65},
        },
    },
    "domains": ["any", "fixed"],
    "tolerance": {"reduction_length": 4096},
    "flops_per_element": 4,
    "rows_independent": True,
}

SCALE = 0.125


class Model(nn.Module):
    """``softmax(SCALE * scores)`` over the keys that the mask lets through; 0 at the others."""

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = ~mask[:, None, None, :]
        return torch.softmax((scores * SCALE).masked_fill(hidden, float("-inf")), dim=-1)


batch = 8
heads = 16
queries = 512
keys = 512


def get_inputs() -> list[torch.Tensor]:
    scores = 8 * torch.randn(batch, heads, queries, keys)
    # To a first query all keys are alike, and far away.
    scores[:, :, 0] = -9e3
    mask = torch.rand(batch, keys) < 0.9
    # Scores of hidden keys may be anything, and often exceed all others.
    hidden = 3e3 * torch.randn(batch, 1, 1, keys)
    return [torch.where(mask[:, None, None], scores, hidden), mask]


def get_init_inputs() -> list[object]:
    return []
