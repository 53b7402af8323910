"""Linear layer with int8 weights and a scale for each output, float16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "prefill": {
            "official": {"rows": 2048, "in_features": 4096, "out_features": 14336},
            "small": {"rows": 32, "in_features": 96, "out_features": 72},
        },
        "decode": {
            "official": {"rows": 16, "in_features": 8192, "out_features": 28672},
            "small": {"rows": 16, "in_features": 128, "out_features": 144},
        },
        "odd": {
            "official": {"rows": 1500, "in_features": 3000, "out_features": 12008},
            "small": {"rows": 37, "in_features": 72, "out_features": 67},
        },
    },
    # Scales of usual weights; with larger ones the sums leave the range of float16.
    "domains": ["any", "fixed", [0.0, 0.001]],
    "tolerance": {"reduction_length": 8192},
    "flops_per_element": 1,
}


class Model(nn.Module):
    """``x @ (weight * scale[:, None]).T``: int8 weights (out, in), float16 scales (out,); summed in float32."""

    def forward(self, x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        dequantised = (weight.to(scale.dtype) * scale[:, None]).to(x.dtype)
        return x @ dequantised.T


rows = 2048
in_features = 4096
out_features = 14336


def get_inputs() -> list[torch.Tensor]:
    x = torch.randn(rows, in_features, dtype=torch.float16)
    weight = torch.randint(-127, 128, (out_features, in_features), dtype=torch.int8)
    scale = (torch.rand(out_features) * 4e-4 + 1e-4).half()
    return [x, weight, scale]


def get_init_inputs() -> list[object]:
    return []
