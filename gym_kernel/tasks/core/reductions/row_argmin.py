"""Index of the first minimum of each row, float32 to int64."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "codebook": {"official": {"rows": 16384, "columns": 4096}, "small": {"rows": 64, "columns": 256}},
        "wide": {"official": {"rows": 64, "columns": 1048576}, "small": {"rows": 40, "columns": 1201}},
        "odd": {"official": {"rows": 7001, "columns": 9973}, "small": {"rows": 37, "columns": 311}},
    },
    # The outputs are copies or indices: values may be of any size, and no number stands for infinity.
    "domains": [[-1e29, 1e29]],
    "flops_per_element": 255,
    "rows_independent": True,
}


class Model(nn.Module):
    """``y_i = min {j : x_ij = min_k x_ik}``: of equal minima the first counts."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        columns = x.shape[-1]
        index = torch.arange(columns, device=x.device)
        return torch.where(x == x.amin(dim=-1, keepdim=True), index, columns).amin(dim=-1)


rows = 16384
columns = 4096


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
