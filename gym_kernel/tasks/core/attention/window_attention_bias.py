"""Attention within small windows with an additive position bias, float32."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "swin": {
            "official": {"windows": 2048, "heads": 4, "length": 49, "dim": 32},
            "small": {"windows": 2, "heads": 3, "length": 49, "dim": 16},
        },
        "large_windows": {
            "official": {"windows": 256, "heads": 8, "length": 144, "dim": 32},
            "small": {"windows": 2, "heads": 2, "length": 40, "dim": 32},
        },
        "odd": {
            "official": {"windows": 1001, "heads": 6, "length": 63, "dim": 40},
            "small": {"windows": 3, "heads": 3, "length": 23, "dim": 20},
        },
    },
    # Larger queries and keys make scores whose rounding is felt after the exponential.
    "domains": [[-8.0, 8.0], [-8.0, 8.0], "any", [-64.0, 64.0]],
    "tolerance": {"reduction_length": 144},
    "flops_per_element": 2,
}


class Model(nn.Module):
    """``softmax(q @ k.T / sqrt(dim) + bias) @ v`` with one bias matrix a head; in full float32, without TF32."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        scores = q @ k.mT * q.shape[-1] ** -0.5
        return torch.softmax(scores + bias, dim=-1) @ v


windows = 2048
heads = 4
length = 49
dim = 32


def get_inputs() -> list[torch.Tensor]:
    q, k, v = (torch.randn(windows, heads, length, dim) for _ in range(3))
    bias = torch.randn(heads, length, length)
    return [q, k, v, bias]


def get_init_inputs() -> list[object]:
    return []
