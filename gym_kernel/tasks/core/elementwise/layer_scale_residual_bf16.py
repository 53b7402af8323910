"""Residual add of a branch scaled by channel and by sample, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {
        "vit": {
            "official": {"batch": 256, "tokens": 197, "channels": 1024},
            "small": {"batch": 2, "tokens": 19, "channels": 128},
        },
        "llm": {
            "official": {"batch": 4, "tokens": 4096, "channels": 4096},
            "small": {"batch": 2, "tokens": 16, "channels": 256},
        },
        "odd": {
            "official": {"batch": 61, "tokens": 1021, "channels": 999},
            "small": {"batch": 3, "tokens": 11, "channels": 123},
        },
    },
    "domains": ["any", "any", "any"],
    "flops_per_element": 3,
    "rows_independent": True,
}


class Model(nn.Module):
    """``x + gamma * weight * branch``, computed in float32.

    ``gamma`` belongs to the channel (LayerScale), ``weight`` to the sample.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.rand(channels, dtype=torch.bfloat16) + 0.5)

    def forward(self, x: torch.Tensor, branch: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        scale = self.gamma.to(wide) * weight.to(wide)[:, None, None]
        return (x.to(wide) + scale * branch.to(wide)).to(x.dtype)


batch = 256
tokens = 197
channels = 1024


def get_inputs() -> list[torch.Tensor]:
    x, branch = (torch.randn(batch, tokens, channels, dtype=torch.bfloat16) for _ in range(2))
    return [x, branch, torch.rand(batch, dtype=torch.bfloat16) + 0.5]


def get_init_inputs() -> list[object]:
    return [channels]
