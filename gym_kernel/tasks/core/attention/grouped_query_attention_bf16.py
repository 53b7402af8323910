"""Grouped-query attention without a mask, bfloat16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 3,
    "shapes": {
        "llama": {
            "official": {"batch": 2, "heads": 32, "groups": 8, "queries": 2048, "keys": 2048, "dim": 128},
            "small": {"batch": 1, "heads": 4, "groups": 2, "queries": 24, "keys": 40, "dim": 32},
        },
        "chunk": {
            "official": {"batch": 4, "heads": 32, "groups": 4, "queries": 512, "keys": 4096, "dim": 128},
            "small": {"batch": 2, "heads": 4, "groups": 1, "queries": 12, "keys": 56, "dim": 32},
        },
        "odd": {
            "official": {"batch": 2, "heads": 28, "groups": 4, "queries": 1501, "keys": 1999, "dim": 128},
            "small": {"batch": 1, "heads": 6, "groups": 2, "queries": 17, "keys": 45, "dim": 32},
        },
    },
    # Larger queries and keys make scores whose rounding in float32 is felt after the exponential.
    "domains": [[-16.0, 16.0], [-16.0, 16.0], "any"],
    "tolerance": {"reduction_length": 4096},
    "flops_per_element": 1,
    "rows_independent": True,
}


class Model(nn.Module):
    """``softmax(q @ k.T / sqrt(dim)) @ v``; ``heads / groups`` consecutive query heads share one head of k and v."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


batch = 2
heads = 32
groups = 8
queries = 2048
keys = 2048
dim = 128


def get_inputs() -> list[torch.Tensor]:
    q = torch.randn(batch, heads, queries, dim, dtype=torch.bfloat16)
    k = torch.randn(batch, groups, keys, dim, dtype=torch.bfloat16)
    v = torch.randn(batch, groups, keys, dim, dtype=torch.bfloat16)
    return [q, k, v]


def get_init_inputs() -> list[object]:
    return []
