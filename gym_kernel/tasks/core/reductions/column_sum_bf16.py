"""Sum of each column, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "bias_gradient": {
            "official": {"rows": 32768, "columns": 4096},
            "small": {"rows": 60, "columns": 256},
        },
        "tall": {"official": {"rows": 1048576, "columns": 96}, "small": {"rows": 64, "columns": 96}},
        "odd": {"official": {"rows": 20011, "columns": 5003}, "small": {"rows": 43, "columns": 403}},
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 1048576},
    "flops_per_element": 42,
}


class Model(nn.Module):
    """``y_j = sum_i x_ij``, summed in float32."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(dim=0, dtype=torch.promote_types(x.dtype, torch.float32)).to(x.dtype)


rows = 32768
columns = 4096


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
