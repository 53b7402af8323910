"""Bias add and exact GELU, float16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 1,
    "shapes": {
        "llm": {"official": {"tokens": 16384, "hidden": 8192}, "small": {"tokens": 24, "hidden": 512}},
        "wide": {"official": {"tokens": 4096, "hidden": 28672}, "small": {"tokens": 7, "hidden": 3000}},
        "odd": {"official": {"tokens": 16383, "hidden": 5003}, "small": {"tokens": 37, "hidden": 203}},
    },
    "domains": ["any"],
    "flops_per_element": 5,
    "rows_independent": True,
}


class Model(nn.Module):
    """``gelu(x + bias)`` with ``gelu(z) = z / 2 * (1 + erf(z / sqrt(2)))``, computed in float32."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(hidden, dtype=torch.float16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        return F.gelu(wide + self.bias).to(x.dtype)


tokens = 16384
hidden = 8192


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, hidden, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return [hidden]
