"""Softplus with a sharpness of its own for each channel, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {
        "mamba": {"official": {"tokens": 32768, "channels": 4096}, "small": {"tokens": 24, "channels": 256}},
        "narrow": {"official": {"tokens": 1048576, "channels": 96}, "small": {"tokens": 64, "channels": 96}},
        "odd": {"official": {"tokens": 30011, "channels": 2999}, "small": {"tokens": 29, "channels": 187}},
    },
    "domains": ["any"],
    "flops_per_element": 4,
    "rows_independent": True,
}


class Model(nn.Module):
    """``log(1 + exp(beta * x)) / beta`` with one ``beta`` for each channel, computed in float32.

    In a form that neither overflows nor loses digits: ``max(z, 0) + log1p(exp(-|z|))`` with ``z = beta * x``.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.rand(channels, dtype=torch.bfloat16) * 1.5 + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        beta = self.beta.to(wide)
        z = x.to(wide) * beta
        return ((z.clamp(min=0) + torch.log1p(torch.exp(-z.abs()))) / beta).to(x.dtype)


tokens = 32768
channels = 4096


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, channels, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [channels]
