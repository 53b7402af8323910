"""GELU-gated product of two tensors (tanh form), float16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 1,
    "shapes": {
        "llm": {"official": {"tokens": 8192, "hidden": 11008}, "small": {"tokens": 16, "hidden": 344}},
        "short": {"official": {"tokens": 2048, "hidden": 36864}, "small": {"tokens": 5, "hidden": 1152}},
        "odd": {"official": {"tokens": 9973, "hidden": 7001}, "small": {"tokens": 31, "hidden": 219}},
    },
    "domains": ["any", "any"],
    "flops_per_element": 9,
    "rows_independent": True,
}


class Model(nn.Module):
    """``gelu(gate) * up`` with ``gelu(z) = z / 2 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 z^3)))``, in float32."""

    def forward(self, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(gate.dtype, torch.float32)
        return (F.gelu(gate.to(wide), approximate="tanh") * up.to(wide)).to(gate.dtype)


tokens = 8192
hidden = 11008


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, hidden, dtype=torch.float16) for _ in range(2)]


def get_init_inputs() -> list[object]:
    return []
