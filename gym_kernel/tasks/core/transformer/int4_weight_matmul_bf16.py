"""Linear layer with packed 4-bit weights and a scale for each group of 32, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "decode": {
            "official": {"rows": 16, "in_features": 8192, "out_features": 28672},
            "small": {"rows": 16, "in_features": 128, "out_features": 140},
        },
        "prefill": {
            "official": {"rows": 2048, "in_features": 4096, "out_features": 14336},
            "small": {"rows": 40, "in_features": 96, "out_features": 60},
        },
        "odd": {
            "official": {"rows": 27, "in_features": 5120, "out_features": 25001},
            "small": {"rows": 27, "in_features": 64, "out_features": 99},
        },
    },
    "domains": ["any", "fixed", [0.0, 0.02]],
    "tolerance": {"reduction_length": 8192},
    "flops_per_element": 1,
}

GROUP = 32


class Model(nn.Module):
    """``x @ weight.T`` with ``weight[o, i] = (nibble[o, i] - 8) * scale[o, i // 32]``, summed in float32.

    A byte ``packed[o, j]`` holds the nibble of ``i = 2 * j`` in its low four bits, that of ``i = 2 * j + 1`` in its
    high four.
    """

    def forward(self, x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        nibbles = torch.stack([packed & 15, packed >> 4], dim=-1).flatten(-2)
        wide = scale.repeat_interleave(GROUP, dim=-1)
        weight = ((nibbles.to(scale.dtype) - 8) * wide).to(x.dtype)
        return x @ weight.T


rows = 16
in_features = 8192
out_features = 28672


def get_inputs() -> list[torch.Tensor]:
    x = torch.randn(rows, in_features, dtype=torch.bfloat16)
    packed = torch.randint(0, 256, (out_features, in_features // 2), dtype=torch.uint8)
    scale = (torch.rand(out_features, in_features // GROUP) * 4e-3 + 1e-3).bfloat16()
    return [x, packed, scale]


def get_init_inputs() -> list[object]:
    return []
