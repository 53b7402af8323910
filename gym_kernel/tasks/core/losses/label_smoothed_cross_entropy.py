"""Cross entropy with smoothed labels for each row, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 2,
    "shapes": {
        "translation": {"official": {"rows": 3072, "classes": 32768}, "small": {"rows": 20, "classes": 1024}},
        "imagenet": {"official": {"rows": 131072, "classes": 1000}, "small": {"rows": 48, "classes": 250}},
        "odd": {"official": {"rows": 4093, "classes": 30011}, "small": {"rows": 21, "classes": 1013}},
    },
    "domains": ["any", "fixed"],
    "tolerance": {"reduction_length": 32768},
    "flops_per_element": 999,
    "rows_independent": True,
}


class Model(nn.Module):
    """``sum_j q_ij * (log(sum_k exp(x_ik)) - x_ij)``, one loss for each row.

    The target ``q_i`` gives 0.1 to all classes in equal shares and 0.9 to the label on top.
    """

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, labels, reduction="none", label_smoothing=0.1)


rows = 3072
classes = 32768


def get_inputs() -> list[torch.Tensor]:
    return [3 * torch.randn(rows, classes), torch.randint(0, classes, (rows,))]


def get_init_inputs() -> list[object]:
    return []
