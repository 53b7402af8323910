"""Clamp, scale by channel, add a second tensor and clamp again, float32."""

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {
        "square": {"official": {"rows": 8192, "channels": 8192}, "small": {"rows": 16, "channels": 512}},
        "narrow": {"official": {"rows": 524288, "channels": 96}, "small": {"rows": 64, "channels": 96}},
        "odd": {"official": {"rows": 9001, "channels": 5003}, "small": {"rows": 27, "channels": 217}},
    },
    "domains": ["any", "any"],
    "flops_per_element": 6,
    "rows_independent": True,
}


class Model(nn.Module):
    """``clamp(scale * clamp(x, -1.5, 1.5) + y, -2, 3)`` with one ``scale`` for each channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (self.scale * x.clamp(-1.5, 1.5) + y).clamp(-2.0, 3.0)


rows = 8192
channels = 8192


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, channels) for _ in range(2)]


def get_init_inputs() -> list[object]:
    return [channels]
