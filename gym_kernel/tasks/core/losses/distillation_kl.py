"""Kullback-Leibler divergence between the softmax of two logits for each row, float32."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "llm": {"official": {"rows": 2048, "classes": 32000}, "small": {"rows": 20, "classes": 1000}},
        "imagenet": {"official": {"rows": 65536, "classes": 1000}, "small": {"rows": 48, "classes": 250}},
        "odd": {"official": {"rows": 1021, "classes": 50257}, "small": {"rows": 13, "classes": 1571}},
    },
    "domains": ["any", "any"],
    "tolerance": {"reduction_length": 50257},
    "flops_per_element": 1500,
    "rows_independent": True,
}


class Model(nn.Module):
    """``4 * sum_j p_ij (log p_ij - log q_ij)``, ``p = softmax(teacher / 2)``, ``q = softmax(student / 2)``.

    One value for each row: distillation at temperature 2 (Hinton et al., "Distilling the knowledge in a neural
    network", 2015), scaled by the temperature's square.
    """

    def forward(self, student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        log_p = torch.log_softmax(teacher / 2, dim=-1)
        log_q = torch.log_softmax(student / 2, dim=-1)
        return 4 * (log_p.exp() * (log_p - log_q)).sum(dim=-1)


rows = 2048
classes = 32000


def get_inputs() -> list[torch.Tensor]:
    teacher = 4 * torch.randn(rows, classes)
    # Students that have learnt more and less.
    return [teacher + 4 * torch.rand(rows, 1) * torch.randn(rows, classes), teacher]


def get_init_inputs() -> list[object]:
    return []
