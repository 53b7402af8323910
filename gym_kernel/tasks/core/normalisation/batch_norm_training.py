"""Batch norm with the statistics of the batch, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 3,
    "shapes": {
        "resnet": {
            "official": {"batch": 64, "channels": 256, "height": 56, "width": 56},
            "small": {"batch": 4, "channels": 12, "height": 14, "width": 14},
        },
        "early": {
            "official": {"batch": 32, "channels": 64, "height": 112, "width": 112},
            "small": {"batch": 2, "channels": 6, "height": 28, "width": 28},
        },
        "odd": {
            "official": {"batch": 61, "channels": 67, "height": 99, "width": 101},
            "small": {"batch": 5, "channels": 7, "height": 11, "width": 13},
        },
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 609939},
    "flops_per_element": 8,
}


class Model(nn.Module):
    """``(x - mean) / sqrt(variance + 1e-5) * weight + bias``.

    Mean and (biased) variance of a channel are taken over the whole batch and all positions.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(channels) + 0.5)
        self.bias = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, None, None, self.weight, self.bias, training=True, eps=1e-5)


batch = 64
channels = 256
height = 56
width = 56


def get_inputs() -> list[torch.Tensor]:
    size, middle = torch.rand(channels, 1, 1) + 0.5, torch.randn(channels, 1, 1)
    return [torch.randn(batch, channels, height, width) * size + middle]


def get_init_inputs() -> list[object]:
    return [channels]
