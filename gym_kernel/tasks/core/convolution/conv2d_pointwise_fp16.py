"""Pointwise (1x1) 2D convolution with bias, float16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 3,
    "shapes": {
        "bottleneck": {
            "official": {"batch": 64, "in_channels": 256, "out_channels": 256, "height": 56, "width": 56},
            "small": {"batch": 2, "in_channels": 40, "out_channels": 36, "height": 7, "width": 9},
        },
        "expand": {
            "official": {"batch": 256, "in_channels": 192, "out_channels": 768, "height": 14, "width": 14},
            "small": {"batch": 2, "in_channels": 24, "out_channels": 72, "height": 5, "width": 6},
        },
        "odd": {
            "official": {"batch": 48, "in_channels": 200, "out_channels": 312, "height": 35, "width": 35},
            "small": {"batch": 3, "in_channels": 20, "out_channels": 28, "height": 7, "width": 5},
        },
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 256},
    "flops_per_element": 0,
    "rows_independent": True,
}


class Model(nn.Module):
    """``y[b, o, i, j] = bias[o] + sum_c weight[o, c] * x[b, c, i, j]``, summed in float32."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        weight = torch.randn(out_channels, in_channels, 1, 1) * in_channels**-0.5
        self.weight = nn.Parameter(weight.half())
        self.bias = nn.Parameter(torch.randn(out_channels).half())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, self.weight, self.bias)


batch = 64
in_channels = 256
out_channels = 256
height = 56
width = 56


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, height, width, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return [in_channels, out_channels]
