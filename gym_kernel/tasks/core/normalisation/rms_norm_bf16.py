"""RMS norm over the last dimension, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "llm": {"official": {"rows": 16384, "dim": 8192}, "small": {"rows": 16, "dim": 512}},
        "heads": {"official": {"rows": 524288, "dim": 128}, "small": {"rows": 64, "dim": 128}},
        "odd": {"official": {"rows": 20011, "dim": 3001}, "small": {"rows": 23, "dim": 301}},
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 8192},
    "flops_per_element": 4,
    "rows_independent": True,
}


class Model(nn.Module):
    """``x / sqrt(mean(x^2) + 1e-6) * weight``, computed in float32, the mean over a row."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(dim, dtype=torch.bfloat16) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
        return (wide * scale * self.weight).to(x.dtype)


rows = 16384
dim = 8192


def get_inputs() -> list[torch.Tensor]:
    return [(torch.randn(rows, dim) * (torch.rand(rows, 1) * 2 + 0.25)).to(torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [dim]
