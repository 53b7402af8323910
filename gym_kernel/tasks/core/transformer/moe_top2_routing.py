"""Top-2 routing of a mixture of experts, float32."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "experts64": {"official": {"tokens": 524288, "experts": 64}, "small": {"tokens": 64, "experts": 64}},
        "experts256": {
            "official": {"tokens": 131072, "experts": 256},
            "small": {"tokens": 48, "experts": 96},
        },
        "odd": {"official": {"tokens": 400003, "experts": 60}, "small": {"tokens": 61, "experts": 60}},
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 256},
    "flops_per_element": 1,
    "rows_independent": True,
}


class Model(nn.Module):
    """The two largest probabilities ``softmax(logits)`` of each token, and the experts (int32) that they belong to.

    Larger first; of equal logits the expert with the lower number comes first.
    """

    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        _, order = torch.sort(logits, dim=-1, descending=True, stable=True)
        experts = order[:, :2]
        return torch.softmax(logits, dim=-1).gather(1, experts), experts.int()


tokens = 524288
experts = 64


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, experts)]


def get_init_inputs() -> list[object]:
    return []
