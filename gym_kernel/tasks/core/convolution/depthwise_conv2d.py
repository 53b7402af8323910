"""Depthwise 2D convolution with bias, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 2,
    "shapes": {
        "mobilenet": {
            "official": {"batch": 32, "channels": 256, "height": 56, "width": 56, "kernel": 3},
            "small": {"batch": 2, "channels": 12, "height": 13, "width": 14, "kernel": 3},
        },
        "convnext": {
            "official": {"batch": 64, "channels": 192, "height": 28, "width": 28, "kernel": 7},
            "small": {"batch": 2, "channels": 10, "height": 14, "width": 12, "kernel": 7},
        },
        "odd": {
            "official": {"batch": 32, "channels": 130, "height": 75, "width": 77, "kernel": 5},
            "small": {"batch": 2, "channels": 11, "height": 15, "width": 11, "kernel": 5},
        },
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 49},
    "flops_per_element": 0,
    "rows_independent": True,
}


class Model(nn.Module):
    """Each channel with its own ``kernel x kernel`` filter, zero padding that keeps the size, stride 1, plus a bias."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, kernel, kernel) / kernel)
        self.bias = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        channels, _, kernel, _ = self.weight.shape
        return F.conv2d(x, self.weight, self.bias, padding=kernel // 2, groups=channels)


batch = 32
channels = 256
height = 56
width = 56
kernel = 3


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs() -> list[object]:
    return [channels, kernel]
