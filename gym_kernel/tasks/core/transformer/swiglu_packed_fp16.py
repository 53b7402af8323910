"""SwiGLU of gate and up projections that lie side by side, float16."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 1,
    "shapes": {
        "llama": {"official": {"rows": 8192, "hidden": 14336}, "small": {"rows": 24, "hidden": 200}},
        "expert": {"official": {"rows": 32768, "hidden": 1408}, "small": {"rows": 48, "hidden": 88}},
        "odd": {"official": {"rows": 9001, "hidden": 5003}, "small": {"rows": 37, "hidden": 131}},
    },
    "domains": ["any"],
    "flops_per_element": 5,
    "rows_independent": True,
}


class Model(nn.Module):
    """``silu(gate) * up``, where a row holds ``gate`` in its first half and ``up`` in its second; in float32."""

    def forward(self, gate_up: torch.Tensor) -> torch.Tensor:
        wide = gate_up if gate_up.dtype == torch.float64 else gate_up.float()
        gate, up = wide.chunk(2, dim=-1)
        return (F.silu(gate) * up).to(gate_up.dtype)


rows = 8192
hidden = 14336


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, 2 * hidden, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return []
