"""Instance norm of a batch of images, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 2,
    "shapes": {
        "style": {
            "official": {"batch": 16, "channels": 64, "height": 256, "width": 256},
            "small": {"batch": 2, "channels": 6, "height": 32, "width": 32},
        },
        "deep": {
            "official": {"batch": 64, "channels": 256, "height": 64, "width": 64},
            "small": {"batch": 3, "channels": 16, "height": 16, "width": 16},
        },
        "odd": {
            "official": {"batch": 13, "channels": 61, "height": 251, "width": 255},
            "small": {"batch": 3, "channels": 5, "height": 21, "width": 25},
        },
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 65536},
    "flops_per_element": 8,
    "rows_independent": True,
}


class Model(nn.Module):
    """``(x - mean) / sqrt(variance + 1e-5) * weight + bias``.

    Mean and (biased) variance belong to one channel of one sample; weight and bias to the channel.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(channels) + 0.5)
        self.bias = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.instance_norm(x, weight=self.weight, bias=self.bias, eps=1e-5)


batch = 16
channels = 64
height = 256
width = 256


def get_inputs() -> list[torch.Tensor]:
    size, middle = torch.rand(batch, channels, 1, 1) + 0.5, torch.randn(batch, channels, 1, 1)
    return [torch.randn(batch, channels, height, width) * size + middle]


def get_init_inputs() -> list[object]:
    return [channels]
