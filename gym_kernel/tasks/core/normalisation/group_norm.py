"""Group norm of a batch of images, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 2,
    "shapes": {
        "unet": {
            "official": {"batch": 32, "channels": 320, "height": 64, "width": 64, "groups": 32},
            "small": {"batch": 2, "channels": 32, "height": 16, "width": 16, "groups": 8},
        },
        "decoder": {
            "official": {"batch": 4, "channels": 128, "height": 256, "width": 256, "groups": 32},
            "small": {"batch": 2, "channels": 16, "height": 32, "width": 32, "groups": 4},
        },
        "odd": {
            "official": {"batch": 23, "channels": 330, "height": 67, "width": 61, "groups": 15},
            "small": {"batch": 3, "channels": 15, "height": 17, "width": 13, "groups": 5},
        },
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 262144},
    "flops_per_element": 8,
    "rows_independent": True,
}


class Model(nn.Module):
    """``(x - mean) / sqrt(variance + 1e-5) * weight + bias``.

    Mean and (biased) variance belong to a sample's group of ``channels / groups`` neighbouring channels; weight and
    bias to the channel.
    """

    def __init__(self, groups: int, channels: int) -> None:
        super().__init__()
        self.groups = groups
        self.weight = nn.Parameter(torch.rand(channels) + 0.5)
        self.bias = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.group_norm(x, self.groups, self.weight, self.bias, eps=1e-5)


batch = 32
channels = 320
height = 64
width = 64
groups = 32


def get_inputs() -> list[torch.Tensor]:
    size, middle = torch.rand(batch, channels, 1, 1) + 0.5, torch.randn(batch, channels, 1, 1)
    return [torch.randn(batch, channels, height, width) * size + middle]


def get_init_inputs() -> list[object]:
    return [groups, channels]
