"""Gradients of layer norm for its input, weight and bias, float32."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "gpt": {"official": {"rows": 16384, "dim": 2048}, "small": {"rows": 40, "dim": 130}},
        "vit": {"official": {"rows": 50432, "dim": 768}, "small": {"rows": 60, "dim": 96}},
        "odd": {"official": {"rows": 10007, "dim": 1999}, "small": {"rows": 37, "dim": 101}},
    },
    # Farther from zero the mean of float32 values is not exact enough for the gradient, where it is taken off twice.
    "domains": ["any", [-32.0, 32.0], [-4.0, 4.0]],
    "tolerance": {"reduction_length": 50432},
    "flops_per_element": 8,
}


class Model(nn.Module):
    """Gradients of ``n * weight + bias`` with ``n = (x - mean(x)) / sqrt(var(x) + 1e-5)`` over the last dimension.

    ``h = grad_y * weight``, ``grad_x = (h - mean(h) - n * mean(h * n)) / sqrt(var(x) + 1e-5)``,
    ``grad_weight = sum(grad_y * n)`` and ``grad_bias = sum(grad_y)`` over the rows.
    """

    def forward(
        self, grad_y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        inverse = torch.rsqrt(variance + 1e-5)
        normal = (x - mean) * inverse
        h = grad_y * weight
        along = (h * normal).mean(dim=-1, keepdim=True)
        grad_x = (h - h.mean(dim=-1, keepdim=True) - normal * along) * inverse
        return grad_x, (grad_y * normal).sum(dim=0), grad_y.sum(dim=0)


rows = 16384
dim = 2048


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, dim), torch.randn(rows, dim), torch.rand(dim) + 0.5]


def get_init_inputs() -> list[object]:
    return []
