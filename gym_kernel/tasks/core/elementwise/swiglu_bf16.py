"""SiLU-and-multiply over the two halves of each row, bfloat16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 1,
    "shapes": {
        "llm": {"official": {"tokens": 8192, "hidden": 14336}, "small": {"tokens": 16, "hidden": 448}},
        "narrow": {"official": {"tokens": 131072, "hidden": 768}, "small": {"tokens": 61, "hidden": 96}},
        "odd": {"official": {"tokens": 10007, "hidden": 6827}, "small": {"tokens": 19, "hidden": 237}},
    },
    "domains": ["any"],
    "flops_per_element": 5,
    "rows_independent": True,
}


class Model(nn.Module):
    """``silu(gate) * up`` where a row is ``[gate, up]`` and ``silu(z) = z / (1 + exp(-z))``, in float32."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        gate, up = wide.chunk(2, dim=-1)
        return (F.silu(gate) * up).to(x.dtype)


tokens = 8192
hidden = 14336


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, 2 * hidden, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
