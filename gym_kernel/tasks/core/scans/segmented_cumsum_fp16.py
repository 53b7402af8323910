"""Cumulative sum along rows that starts again at flags, float16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "square": {"official": {"rows": 8192, "length": 8192}, "small": {"rows": 16, "length": 512}},
        "long": {"official": {"rows": 512, "length": 131072}, "small": {"rows": 5, "length": 4099}},
        "odd": {"official": {"rows": 10007, "length": 5003}, "small": {"rows": 23, "length": 311}},
    },
    "domains": ["any", "fixed"],
    "tolerance": {"reduction_length": 128},
    "flops_per_element": 0.9,
    "rows_independent": True,
}


class Model(nn.Module):
    """``y_t = x_t`` where ``start_t`` is set, ``y_t = y_(t-1) + x_t`` elsewhere (``y_(-1) = 0``), in float32.

    Computed in ``log2(length)`` doubling steps (Hillis and Steele, "Data parallel algorithms", 1986).
    """

    def forward(self, x: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        total = x.to(torch.promote_types(x.dtype, torch.float32))
        reach = 1
        while reach < x.shape[-1]:
            carried = total[:, :-reach].masked_fill(start[:, reach:], 0)
            total = torch.cat((total[:, :reach], total[:, reach:] + carried), dim=-1)
            start = torch.cat((start[:, :reach], start[:, reach:] | start[:, :-reach]), dim=-1)
            reach *= 2
        return total.to(x.dtype)


rows = 8192
length = 8192


def get_inputs() -> list[torch.Tensor]:
    # One start in 64 on average, so that segments are of every length and cross every tile.
    return [torch.randn(rows, length, dtype=torch.float16), torch.rand(rows, length) < 1 / 64]


def get_init_inputs() -> list[object]:
    return []
