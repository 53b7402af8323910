"""Euclidean norm of each row, float16."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "llm": {"official": {"rows": 32768, "columns": 4096}, "small": {"rows": 48, "columns": 512}},
        "narrow": {"official": {"rows": 1048576, "columns": 128}, "small": {"rows": 64, "columns": 128}},
        "odd": {"official": {"rows": 20011, "columns": 7001}, "small": {"rows": 37, "columns": 389}},
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 7001},
    "flops_per_element": 255,
    "rows_independent": True,
}


class Model(nn.Module):
    """``y_i = sqrt(sum_j x_ij^2)``, summed in float32: the sum does not fit into float16."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        return wide.square().sum(dim=-1).sqrt().to(x.dtype)


rows = 32768
columns = 4096


def get_inputs() -> list[torch.Tensor]:
    # Rows of different sizes: the norms of rows drawn alike are all alike.
    return [(torch.randn(rows, columns) * (torch.rand(rows, 1) + 0.25)).to(torch.float16)]


def get_init_inputs() -> list[object]:
    return []
