"""Round trip through int8 in blocks that share a power-of-two scale, with its error, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "llm": {"official": {"rows": 8192, "dim": 8192}, "small": {"rows": 16, "dim": 512}},
        "narrow": {"official": {"rows": 262144, "dim": 160}, "small": {"rows": 48, "dim": 160}},
        "odd": {"official": {"rows": 12289, "dim": 5024}, "small": {"rows": 13, "dim": 352}},
    },
    "domains": ["any"],
    "flops_per_element": 3.5,
    "rows_independent": True,
}


class Model(nn.Module):
    """``y = clamp(round(x / s), -127, 127) * s`` and the error ``x - y`` that feedback needs; returns both.

    There is one ``s`` for each block of ``block`` neighbours in a row: ``s = 2^(e - 7)`` where
    ``2^(e - 1) <= max |x| < 2^e`` in the block (``e = 0`` for a block of zeros), as in the MX formats. Division by it
    is exact. ``round`` goes to the nearest integer, halves to the even one.
    """

    def __init__(self, block: int) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        blocks = x.unflatten(-1, (-1, self.block))
        _, exponent = torch.frexp(blocks.abs().amax(dim=-1, keepdim=True))
        scale = torch.ldexp(torch.ones_like(exponent, dtype=x.dtype), exponent - 7)
        codes = torch.round(blocks / scale).clamp(-127, 127)
        coarse = (codes * scale).flatten(-2)
        return coarse, x - coarse


rows = 8192
dim = 8192
block = 32


def get_inputs() -> list[torch.Tensor]:
    # Rows of different sizes, so that the scales differ.
    return [torch.randn(rows, dim) * torch.exp(torch.randn(rows, 1))]


def get_init_inputs() -> list[object]:
    return [block]
