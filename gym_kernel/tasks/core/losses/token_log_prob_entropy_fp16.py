"""Log-probability of the chosen token and entropy of each row, float16."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "llama3": {
            "official": {"tokens": 1024, "vocabulary": 128256},
            "small": {"tokens": 24, "vocabulary": 2004},
        },
        "llama2": {
            "official": {"tokens": 4096, "vocabulary": 32000},
            "small": {"tokens": 40, "vocabulary": 600},
        },
        "odd": {
            "official": {"tokens": 2047, "vocabulary": 50257},
            "small": {"tokens": 33, "vocabulary": 1571},
        },
    },
    "domains": ["any", "fixed"],
    "tolerance": {"reduction_length": 128256},
    "flops_per_element": 1500,
    "rows_independent": True,
}


class Model(nn.Module):
    """``log p_i,chosen(i)`` and ``-sum_j p_ij log p_ij`` with ``p_i = softmax(x_i)``, computed in float32.

    Returns both, as policy-gradient losses need them.
    """

    def forward(self, logits: torch.Tensor, chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        log_p = torch.log_softmax(wide, dim=-1)
        of_chosen = log_p.gather(-1, chosen[:, None]).squeeze(-1)
        entropy = -(log_p.exp() * log_p).sum(dim=-1)
        return of_chosen.to(logits.dtype), entropy.to(logits.dtype)


tokens = 1024
vocabulary = 128256


def get_inputs() -> list[torch.Tensor]:
    # From nearly sure to nearly undecided.
    sharpness = 4 * torch.rand(tokens, 1) + 0.5
    logits = (torch.randn(tokens, vocabulary) * sharpness).to(torch.float16)
    return [logits, torch.randint(0, vocabulary, (tokens,))]


def get_init_inputs() -> list[object]:
    return []
