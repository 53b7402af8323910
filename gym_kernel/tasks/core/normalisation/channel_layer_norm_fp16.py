"""Layer norm over the channels of images in NCHW order, float16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "convnext": {
            "official": {"batch": 128, "channels": 192, "height": 56, "width": 56},
            "small": {"batch": 2, "channels": 24, "height": 14, "width": 14},
        },
        "deep": {
            "official": {"batch": 256, "channels": 768, "height": 14, "width": 14},
            "small": {"batch": 2, "channels": 96, "height": 7, "width": 7},
        },
        "odd": {
            "official": {"batch": 61, "channels": 99, "height": 101, "width": 113},
            "small": {"batch": 3, "channels": 33, "height": 9, "width": 13},
        },
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 768},
    "flops_per_element": 8,
    "rows_independent": True,
}


class Model(nn.Module):
    """``(x - mean) / sqrt(variance + 1e-6) * weight + bias``, computed in float32.

    Mean and (biased) variance are taken over the channels at one position of one sample.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(channels, dtype=torch.float16) + 0.5)
        self.bias = nn.Parameter(torch.randn(channels, dtype=torch.float16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        variance, mean = torch.var_mean(wide, dim=1, correction=0, keepdim=True)
        normed = (wide - mean) * torch.rsqrt(variance + 1e-6)
        return (normed * self.weight[:, None, None] + self.bias[:, None, None]).to(x.dtype)


batch = 128
channels = 192
height = 56
width = 56


def get_inputs() -> list[torch.Tensor]:
    size, middle = torch.rand(batch, 1, height, width) + 0.5, torch.randn(batch, 1, height, width)
    return [(torch.randn(batch, channels, height, width) * size + middle).to(torch.float16)]


def get_init_inputs() -> list[object]:
    return [channels]
