"""Rotary position embedding of query or key heads, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {
        "llama": {
            "official": {"batch": 4, "length": 2048, "heads": 32, "dim": 128},
            "small": {"batch": 2, "length": 11, "heads": 4, "dim": 64},
        },
        "long": {
            "official": {"batch": 1, "length": 16384, "heads": 16, "dim": 64},
            "small": {"batch": 1, "length": 40, "heads": 3, "dim": 32},
        },
        "odd": {
            "official": {"batch": 3, "length": 3001, "heads": 28, "dim": 80},
            "small": {"batch": 2, "length": 13, "heads": 5, "dim": 40},
        },
    },
    "domains": ["any", [-1.0, 1.0], [-1.0, 1.0]],
    "flops_per_element": 3,
}


class Model(nn.Module):
    """Turns the pairs ``(x[j], x[j + dim / 2])`` of every head by the angle whose cosine and sine are given.

    ``y[j] = x[j] * cos[t, j] - x[j + dim / 2] * sin[t, j]`` and
    ``y[j + dim / 2] = x[j + dim / 2] * cos[t, j] + x[j] * sin[t, j]`` at position ``t``, computed in float32.
    """

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        wide = x if x.dtype == torch.float64 else x.float()
        first, second = wide.chunk(2, dim=-1)
        cos, sin = cos[None, :, None, :], sin[None, :, None, :]
        turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
        return turned.to(x.dtype)


batch = 4
length = 2048
heads = 32
dim = 128


def get_inputs() -> list[torch.Tensor]:
    x = torch.randn(batch, length, heads, dim, dtype=torch.bfloat16)
    frequency = 10000.0 ** (-torch.arange(dim // 2) / (dim // 2))
    angle = torch.arange(length)[:, None] * frequency
    return [x, angle.cos().bfloat16(), angle.sin().bfloat16()]


def get_init_inputs() -> list[object]:
    return []
