"""Dot product of matching rows of two matrices, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "embeddings": {"official": {"rows": 65536, "columns": 1024}, "small": {"rows": 48, "columns": 256}},
        "heads": {"official": {"rows": 524288, "columns": 128}, "small": {"rows": 64, "columns": 128}},
        "odd": {"official": {"rows": 20011, "columns": 3001}, "small": {"rows": 37, "columns": 389}},
    },
    "domains": ["any", "any"],
    "tolerance": {"reduction_length": 3001},
    "flops_per_element": 255,
    "rows_independent": True,
}


class Model(nn.Module):
    """``z_i = sum_j x_ij y_ij``, multiplied and summed in float32."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        return (x.to(wide) * y.to(wide)).sum(dim=-1).to(x.dtype)


rows = 65536
columns = 1024


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=torch.bfloat16) for _ in range(2)]


def get_init_inputs() -> list[object]:
    return []
