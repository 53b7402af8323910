"""Causal attention of the last queries of a sequence, float16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 3,
    "shapes": {
        "chunk": {
            "official": {"batch": 1, "heads": 32, "queries": 2048, "keys": 4096, "dim": 128},
            "small": {"batch": 1, "heads": 2, "queries": 24, "keys": 52, "dim": 64, "QUERY_BLOCK": 8},
        },
        "batch": {
            "official": {"batch": 4, "heads": 16, "queries": 1024, "keys": 2048, "dim": 64},
            "small": {"batch": 2, "heads": 2, "queries": 20, "keys": 40, "dim": 32, "QUERY_BLOCK": 8},
        },
        "odd": {
            "official": {"batch": 3, "heads": 20, "queries": 1201, "keys": 3001, "dim": 64},
            "small": {"batch": 1, "heads": 3, "queries": 23, "keys": 49, "dim": 32, "QUERY_BLOCK": 8},
        },
    },
    "domains": ["any", "any", "any"],
    "tolerance": {"reduction_length": 4096},
    "flops_per_element": 1,
    "rows_independent": True,
}

QUERY_BLOCK = 256


class Model(nn.Module):
    """``softmax(q @ k.T / sqrt(dim)) @ v`` in which query ``i`` sees the keys ``0 .. keys - queries + i``.

    Queries are taken a block at a time, so that the keys after a block are not multiplied in vain.
    """

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        queries, before = q.shape[2], k.shape[2] - q.shape[2]
        blocks = []
        for start in range(0, queries, QUERY_BLOCK):
            stop = min(start + QUERY_BLOCK, queries)
            seen = before + stop
            visible = torch.ones(stop - start, seen, dtype=torch.bool, device=q.device).tril(before + start)
            blocks.append(
                F.scaled_dot_product_attention(
                    q[:, :, start:stop], k[:, :, :seen], v[:, :, :seen], attn_mask=visible
                )
            )
        return torch.cat(blocks, dim=2)


batch = 1
heads = 32
queries = 2048
keys = 4096
dim = 128


def get_inputs() -> list[torch.Tensor]:
    q = torch.randn(batch, heads, queries, dim, dtype=torch.float16)
    k = torch.randn(batch, heads, keys, dim, dtype=torch.float16)
    v = torch.randn(batch, heads, keys, dim, dtype=torch.float16)
    return [q, k, v]


def get_init_inputs() -> list[object]:
    return []
