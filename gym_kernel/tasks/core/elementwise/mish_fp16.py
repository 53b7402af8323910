"""Mish activation of a batch of images, float16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 1,
    "shapes": {
        "detector": {
            "official": {"batch": 64, "channels": 128, "height": 104, "width": 104},
            "small": {"batch": 2, "channels": 8, "height": 26, "width": 26},
        },
        "early": {
            "official": {"batch": 32, "channels": 32, "height": 256, "width": 256},
            "small": {"batch": 2, "channels": 3, "height": 64, "width": 64},
        },
        "odd": {
            "official": {"batch": 61, "channels": 67, "height": 113, "width": 131},
            "small": {"batch": 3, "channels": 5, "height": 17, "width": 19},
        },
    },
    "domains": ["any"],
    "flops_per_element": 5,
    "rows_independent": True,
}


class Model(nn.Module):
    """``x * tanh(log(1 + exp(x)))``, computed in float32."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        return F.mish(wide).to(x.dtype)


batch = 64
channels = 128
height = 104
width = 104


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return []
