"""One step of Adam on a flat tensor: parameter and both moments, float32."""

import torch
from torch import nn

TASK = {
    "level": 1,
    "shapes": {
        "large": {"official": {"elements": 33554432}, "small": {"elements": 8192}},
        "medium": {"official": {"elements": 8388608}, "small": {"elements": 2048}},
        "odd": {"official": {"elements": 20000003}, "small": {"elements": 5003}},
    },
    "domains": ["any", "any", "any", [0.0, None]],
    "flops_per_element": 4,
    "rows_independent": True,
}


class Model(nn.Module):
    """``m' = 0.9 m + 0.1 g``, ``v' = 0.95 v + 0.05 g^2``, ``p' = p - 0.1 m' / (sqrt(v') + 0.01)``.

    Returns ``p'``, ``m'`` and ``v'`` as new tensors (Kingma and Ba, "Adam", 2015, without bias correction).
    """

    def forward(
        self, parameter: torch.Tensor, gradient: torch.Tensor, first: torch.Tensor, second: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        first = 0.9 * first + 0.1 * gradient
        second = 0.95 * second + 0.05 * gradient.square()
        return parameter - 0.1 * first / (second.sqrt() + 0.01), first, second


elements = 33554432


def get_inputs() -> list[torch.Tensor]:
    parameter, gradient, first = (torch.randn(elements) for _ in range(3))
    return [parameter, gradient, first, torch.randn(elements).square()]


def get_init_inputs() -> list[object]:
    return []
