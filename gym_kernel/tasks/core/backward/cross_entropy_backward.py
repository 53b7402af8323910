"""Gradient of cross entropy for its logits, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "llama": {"official": {"rows": 2048, "classes": 32000}, "small": {"rows": 12, "classes": 500}},
        "imagenet": {"official": {"rows": 65536, "classes": 1000}, "small": {"rows": 40, "classes": 100}},
        "odd": {"official": {"rows": 1501, "classes": 50257}, "small": {"rows": 29, "classes": 257}},
    },
    "domains": ["any", "any", "fixed"],
    "tolerance": {"reduction_length": 50257},
    "flops_per_element": 5,
    "rows_independent": True,
}


class Model(nn.Module):
    """``grad_logits[i, c] = grad_loss[i] * (softmax(logits[i])[c] - (c == target[i]))``."""

    def forward(self, grad_loss: torch.Tensor, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        probability = torch.softmax(logits, dim=-1)
        one = torch.ones_like(grad_loss)[:, None]
        return grad_loss[:, None] * probability.scatter_add(1, target[:, None], -one)


rows = 2048
classes = 32000


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows), 2 * torch.randn(rows, classes), torch.randint(0, classes, (rows,))]


def get_init_inputs() -> list[object]:
    return []
