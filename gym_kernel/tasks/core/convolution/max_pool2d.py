"""3x3 max pooling with stride 2 and padding 1, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 2,
    "shapes": {
        "resnet_stem": {
            "official": {"batch": 64, "channels": 64, "height": 112, "width": 112},
            "small": {"batch": 2, "channels": 20, "height": 18, "width": 22},
        },
        "late": {
            "official": {"batch": 128, "channels": 256, "height": 28, "width": 28},
            "small": {"batch": 2, "channels": 30, "height": 14, "width": 14},
        },
        "odd": {
            "official": {"batch": 48, "channels": 60, "height": 113, "width": 115},
            "small": {"batch": 2, "channels": 19, "height": 15, "width": 17},
        },
    },
    # The outputs are copies or indices: values may be of any size, and no number stands for infinity.
    "domains": [[-1e29, 1e29]],
    "flops_per_element": 8,
    "rows_independent": True,
}


class Model(nn.Module):
    """The largest value of each 3x3 window, two apart; the padding never wins."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x, kernel_size=3, stride=2, padding=1)


batch = 64
channels = 64
height = 112
width = 112


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs() -> list[object]:
    return []
