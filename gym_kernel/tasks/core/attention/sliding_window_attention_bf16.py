"""Causal attention within a sliding window, bfloat16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 3,
    "shapes": {
        "mistral": {
            "official": {"batch": 1, "heads": 32, "queries": 8192, "dim": 128, "window": 1024},
            "small": {"batch": 1, "heads": 2, "queries": 40, "dim": 32, "window": 20, "QUERY_BLOCK": 4},
        },
        "local": {
            "official": {"batch": 4, "heads": 16, "queries": 4096, "dim": 64, "window": 512},
            "small": {"batch": 2, "heads": 2, "queries": 32, "dim": 32, "window": 9, "QUERY_BLOCK": 4},
        },
        "odd": {
            "official": {"batch": 1, "heads": 28, "queries": 7001, "dim": 64, "window": 1000},
            "small": {"batch": 1, "heads": 3, "queries": 37, "dim": 32, "window": 17, "QUERY_BLOCK": 4},
        },
    },
    # Larger queries and keys make scores whose rounding in float32 is felt after the exponential.
    "domains": [[-16.0, 16.0], [-16.0, 16.0], "any"],
    "tolerance": {"reduction_length": 1024},
    "flops_per_element": 1,
    "rows_independent": True,
}

QUERY_BLOCK = 128


class Model(nn.Module):
    """``softmax(q @ k.T / sqrt(dim)) @ v`` in which query ``i`` sees the keys ``i .. i + window - 1``.

    There are ``queries + window - 1`` keys: those of the window before the first query come first. Queries are taken a
    block at a time, so that keys outside the window are not multiplied in vain.
    """

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        queries = q.shape[2]
        blocks = []
        for start in range(0, queries, QUERY_BLOCK):
            stop = min(start + QUERY_BLOCK, queries)
            last = stop + self.window - 1
            band = torch.ones(stop - start, last - start, dtype=torch.bool, device=q.device)
            band = band.triu().tril(self.window - 1)
            blocks.append(
                F.scaled_dot_product_attention(
                    q[:, :, start:stop], k[:, :, start:last], v[:, :, start:last], attn_mask=band
                )
            )
        return torch.cat(blocks, dim=2)


batch = 1
heads = 32
queries = 8192
dim = 128
window = 1024


def get_inputs() -> list[torch.Tensor]:
    q = torch.randn(batch, heads, queries, dim, dtype=torch.bfloat16)
    k = torch.randn(batch, heads, queries + window - 1, dim, dtype=torch.bfloat16)
    v = torch.randn(batch, heads, queries + window - 1, dim, dtype=torch.bfloat16)
    return [q, k, v]


def get_init_inputs() -> list[object]:
    return [window]
