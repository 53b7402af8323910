"""Cross entropy of each token, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 2,
    "shapes": {
        "llama": {
            "official": {"tokens": 4096, "vocabulary": 32000},
            "small": {"tokens": 24, "vocabulary": 1000},
        },
        "imagenet": {
            "official": {"tokens": 65536, "vocabulary": 1000},
            "small": {"tokens": 48, "vocabulary": 250},
        },
        "gpt2": {
            "official": {"tokens": 2047, "vocabulary": 50257},
            "small": {"tokens": 33, "vocabulary": 1571},
        },
    },
    "domains": ["any", "fixed"],
    "tolerance": {"reduction_length": 50257},
    "flops_per_element": 749,
    "rows_independent": True,
}


class Model(nn.Module):
    """``log(sum_j exp(x_ij)) - x_i,label(i)``, one loss for each row."""

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, labels, reduction="none")


tokens = 4096
vocabulary = 32000


def get_inputs() -> list[torch.Tensor]:
    return [3 * torch.randn(tokens, vocabulary), torch.randint(0, vocabulary, (tokens,))]


def get_init_inputs() -> list[object]:
    return []
