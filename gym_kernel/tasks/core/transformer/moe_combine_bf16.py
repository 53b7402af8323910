"""Weighted sum of the two expert outputs of every token, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "mixtral": {
            "official": {"tokens": 16384, "dim": 4096},
            "small": {"tokens": 30, "dim": 200},
        },
        "fine_grained": {
            "official": {"tokens": 65536, "dim": 512},
            "small": {"tokens": 60, "dim": 96},
        },
        "odd": {
            "official": {"tokens": 20011, "dim": 1501},
            "small": {"tokens": 37, "dim": 131},
        },
    },
    "domains": ["any", "fixed", [0.0, 1.0]],
    "tolerance": {"reduction_length": 2},
    "flops_per_element": 3,
}


class Model(nn.Module):
    """``y[t] = weight[t, 0] * rows[slot[t, 0]] + weight[t, 1] * rows[slot[t, 1]]``, summed in float32.

    ``rows`` holds the experts' outputs, sorted by expert; ``slot`` says where those of a token are.
    """

    def forward(self, rows: torch.Tensor, slot: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = rows if rows.dtype == torch.float64 else rows.float()
        mixed = weight[:, :1] * wide[slot[:, 0]] + weight[:, 1:] * wide[slot[:, 1]]
        return mixed.to(rows.dtype)


tokens = 16384
dim = 4096


def get_inputs() -> list[torch.Tensor]:
    rows = torch.randn(2 * tokens, dim, dtype=torch.bfloat16)
    slot = torch.randperm(2 * tokens).view(tokens, 2)
    weight = (torch.rand(tokens, 2) * 0.8 + 0.1).bfloat16()
    return [rows, slot, weight]


def get_init_inputs() -> list[object]:
    return []
