"""Batch norm with stored statistics and ReLU, float16."""

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {
        "resnet": {
            "official": {"batch": 128, "channels": 256, "height": 56, "width": 56},
            "small": {"batch": 2, "channels": 16, "height": 14, "width": 14},
        },
        "late": {
            "official": {"batch": 512, "channels": 2048, "height": 7, "width": 7},
            "small": {"batch": 3, "channels": 64, "height": 7, "width": 7},
        },
        "odd": {
            "official": {"batch": 61, "channels": 131, "height": 99, "width": 101},
            "small": {"batch": 3, "channels": 13, "height": 11, "width": 13},
        },
    },
    "domains": ["any"],
    "flops_per_element": 3,
    "rows_independent": True,
}


class Model(nn.Module):
    """``max((x - mean) / sqrt(variance + 1e-5) * weight + bias, 0)``, computed in float32.

    Mean, variance, weight and bias are stored for each channel.
    """

    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(channels, dtype=torch.float16) + 0.5)
        self.bias = nn.Parameter(torch.randn(channels, dtype=torch.float16))
        self.register_buffer("running_mean", torch.randn(channels, dtype=torch.float16))
        self.register_buffer("running_var", torch.rand(channels, dtype=torch.float16) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        scale = self.weight.to(wide) * torch.rsqrt(self.running_var.to(wide) + 1e-5)
        centred = x.to(wide) - self.running_mean[:, None, None]
        return (centred * scale[:, None, None] + self.bias[:, None, None]).relu().to(x.dtype)


batch = 128
channels = 256
height = 56
width = 56


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return [channels]
