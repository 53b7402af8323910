"""Hard swish of a batch of images, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 1,
    "shapes": {
        "early": {
            "official": {"batch": 64, "channels": 64, "height": 112, "width": 112},
            "small": {"batch": 2, "channels": 4, "height": 28, "width": 28},
        },
        "late": {
            "official": {"batch": 256, "channels": 960, "height": 14, "width": 14},
            "small": {"batch": 2, "channels": 24, "height": 14, "width": 14},
        },
        "odd": {
            "official": {"batch": 61, "channels": 67, "height": 113, "width": 109},
            "small": {"batch": 3, "channels": 5, "height": 13, "width": 19},
        },
    },
    "domains": ["any"],
    "flops_per_element": 4,
    "rows_independent": True,
}


class Model(nn.Module):
    """``x * min(max(x + 3, 0), 6) / 6``."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.hardswish(x)


batch = 64
channels = 64
height = 112
width = 112


def get_inputs() -> list[torch.Tensor]:
    # Wider than a standard normal: the function is flat below -3 and the identity above 3.
    return [3 * torch.randn(batch, channels, height, width)]


def get_init_inputs() -> list[object]:
    return []
