"""Causal depthwise 1D convolution with SiLU, bfloat16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 2,
    "shapes": {
        "mamba": {
            "official": {"batch": 8, "channels": 2048, "length": 2048, "taps": 4},
            "small": {"batch": 2, "channels": 24, "length": 70, "taps": 4},
        },
        "hybrid": {
            "official": {"batch": 2, "channels": 5120, "length": 4096, "taps": 3},
            "small": {"batch": 2, "channels": 30, "length": 50, "taps": 3},
        },
        "odd": {
            "official": {"batch": 16, "channels": 1000, "length": 3001, "taps": 4},
            "small": {"batch": 3, "channels": 17, "length": 61, "taps": 4},
        },
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 4},
    "flops_per_element": 6,
    "rows_independent": True,
}


class Model(nn.Module):
    """``silu(bias[c] + sum_s weight[c, s] * x[b, c, t + s - taps + 1])``, zeros before the sequence begins."""

    def __init__(self, channels: int, taps: int) -> None:
        super().__init__()
        weight = torch.randn(channels, 1, taps) * taps**-0.5
        self.weight = nn.Parameter(weight.bfloat16())
        self.bias = nn.Parameter(torch.randn(channels).bfloat16())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        channels, _, taps = self.weight.shape
        padded = F.pad(x, (taps - 1, 0))
        return F.silu(F.conv1d(padded, self.weight, self.bias, groups=channels))


batch = 8
channels = 2048
length = 2048
taps = 4


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, channels, length, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [channels, taps]
