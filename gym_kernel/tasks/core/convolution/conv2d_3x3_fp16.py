"""3x3 2D convolution with bias, float16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 3,
    "shapes": {
        "resnet": {
            "official": {"batch": 64, "in_channels": 128, "out_channels": 128, "height": 56, "width": 56},
            "small": {"batch": 2, "in_channels": 12, "out_channels": 16, "height": 10, "width": 11},
        },
        "unet": {
            "official": {"batch": 16, "in_channels": 320, "out_channels": 320, "height": 64, "width": 64},
            "small": {"batch": 2, "in_channels": 16, "out_channels": 20, "height": 8, "width": 8},
        },
        "odd": {
            "official": {"batch": 32, "in_channels": 72, "out_channels": 136, "height": 75, "width": 77},
            "small": {"batch": 2, "in_channels": 11, "out_channels": 18, "height": 9, "width": 7},
        },
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 2880},
    "flops_per_element": 0,
    "rows_independent": True,
}


class Model(nn.Module):
    """2D convolution, zero padding 1, stride 1, plus a bias for each output channel; summed in float32."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        weight = torch.randn(out_channels, in_channels, 3, 3) * (9 * in_channels) ** -0.5
        self.weight = nn.Parameter(weight.half())
        self.bias = nn.Parameter(torch.randn(out_channels).half())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, self.weight, self.bias, padding=1)


batch = 64
in_channels = 128
out_channels = 128
height = 56
width = 56


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, height, width, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return [in_channels, out_channels]
