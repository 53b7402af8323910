"""Gradients of a matrix product for both operands, float16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "square": {"official": {"m": 4096, "k": 4096, "n": 4096}, "small": {"m": 48, "k": 56, "n": 72}},
        "head": {"official": {"m": 8192, "k": 2048, "n": 8192}, "small": {"m": 64, "k": 40, "n": 80}},
        "odd": {"official": {"m": 5000, "k": 3000, "n": 4008}, "small": {"m": 39, "k": 61, "n": 47}},
    },
    # A sum of 8,192 products of values up to 2.75 is at most 61,952: it cannot leave the range of float16.
    "domains": [[-2.75, 2.75], [-2.75, 2.75], [-2.75, 2.75]],
    "tolerance": {"reduction_length": 8192},
    "flops_per_element": 0,
}


class Model(nn.Module):
    """For ``c = a @ b``: ``grad_a = grad_c @ b.T`` and ``grad_b = a.T @ grad_c``, summed in float32."""

    def forward(
        self, grad_c: torch.Tensor, a: torch.Tensor, b: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return grad_c @ b.T, a.T @ grad_c


m = 4096
k = 4096
n = 4096


def get_inputs() -> list[torch.Tensor]:
    # Cut off, so that no sum can overflow.
    grad_c = torch.randn(m, n, dtype=torch.float16).clamp(-2.75, 2.75)
    a = torch.randn(m, k, dtype=torch.float16).clamp(-2.75, 2.75)
    b = torch.randn(k, n, dtype=torch.float16).clamp(-2.75, 2.75)
    return [grad_c, a, b]


def get_init_inputs() -> list[object]:
    return []
