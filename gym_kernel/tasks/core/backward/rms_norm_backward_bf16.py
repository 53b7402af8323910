"""Gradients of RMS norm for its input and weight, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "llama": {"official": {"rows": 16384, "dim": 4096}, "small": {"rows": 30, "dim": 200}},
        "small_model": {"official": {"rows": 65536, "dim": 576}, "small": {"rows": 56, "dim": 96}},
        "odd": {"official": {"rows": 10007, "dim": 3001}, "small": {"rows": 37, "dim": 131}},
    },
    "domains": ["any", "any", "any"],
    "tolerance": {"reduction_length": 65536},
    "flops_per_element": 6,
}


class Model(nn.Module):
    """Gradients of ``n * weight`` with ``n = x * r`` and ``r = 1 / sqrt(mean(x^2) + 1e-6)`` over the last dimension.

    ``h = grad_y * weight``, ``grad_x = r * (h - n * mean(h * n))`` and ``grad_weight = sum(grad_y * n)`` over the
    rows; computed in float32.
    """

    def forward(
        self, grad_y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x.dtype == torch.float64:
            return self._gradients(grad_y, x, weight)
        grad_x, grad_weight = self._gradients(grad_y.float(), x.float(), weight.float())
        return grad_x.to(x.dtype), grad_weight.to(weight.dtype)

    def _gradients(
        self, grad_y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        r = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6)
        normal = x * r
        h = grad_y * weight
        grad_x = r * (h - normal * (h * normal).mean(dim=-1, keepdim=True))
        return grad_x, (grad_y * normal).sum(dim=0)


rows = 16384
dim = 4096


def get_inputs() -> list[torch.Tensor]:
    grad_y = torch.randn(rows, dim, dtype=torch.bfloat16)
    x = torch.randn(rows, dim, dtype=torch.bfloat16)
    weight = (torch.rand(dim) + 0.5).bfloat16()
    return [grad_y, x, weight]


def get_init_inputs() -> list[object]:
    return []
