"""Mean binary cross entropy of each row from logits, with a weight for positives, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 2,
    "shapes": {
        "tags": {"official": {"rows": 8192, "labels": 6000}, "small": {"rows": 40, "labels": 300}},
        "wide": {"official": {"rows": 512, "labels": 100000}, "small": {"rows": 32, "labels": 1500}},
        "odd": {"official": {"rows": 20011, "labels": 1999}, "small": {"rows": 37, "labels": 199}},
    },
    "domains": ["any", [0.0, 1.0]],
    "tolerance": {"reduction_length": 6000},
    "flops_per_element": 1390,
    "rows_independent": True,
}


class Model(nn.Module):
    """``-mean_j (w_j t_ij log s(x_ij) + (1 - t_ij) log(1 - s(x_ij)))`` with the sigmoid ``s``.

    Both logarithms are taken without overflow: ``log s(x) = min(x, 0) - log1p(exp(-|x|))``.
    """

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(labels) * 2 + 0.5)

    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        losses = self.weight * targets * F.logsigmoid(logits) + (1 - targets) * F.logsigmoid(-logits)
        return -losses.mean(dim=-1)


rows = 8192
labels = 6000


def get_inputs() -> list[torch.Tensor]:
    logits = torch.randn(rows, labels) * (4 * torch.rand(rows, 1) + 0.5)
    return [logits, torch.rand(rows, labels)]


def get_init_inputs() -> list[object]:
    return [labels]
