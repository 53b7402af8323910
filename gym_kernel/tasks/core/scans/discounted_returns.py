"""Discounted returns of episodes, from their ends to their beginnings, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = {
    "level": 3,
    "shapes": {
        "batch": {"official": {"actors": 16384, "steps": 2048}, "small": {"actors": 16, "steps": 400}},
        "long": {"official": {"actors": 512, "steps": 65536}, "small": {"actors": 4, "steps": 2051}},
        "odd": {"official": {"actors": 20011, "steps": 1501}, "small": {"actors": 23, "steps": 301}},
    },
    "domains": ["any", "fixed", "any"],
    "tolerance": {"reduction_length": 512},
    "flops_per_element": 1.9,
    "rows_independent": True,
}


class Model(nn.Module):
    """``G_t = r_t + 0.99 * G_(t+1)``, or ``G_t = r_t`` where an episode ends; ``G`` after the last step is given.

    Computed in ``log2(steps)`` doubling steps (Hillis and Steele, "Data parallel algorithms", 1986).
    """

    def forward(self, reward: torch.Tensor, ends: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        total = torch.cat((reward, last[:, None]), dim=1)
        weight = F.pad(0.99 * (~ends).to(reward.dtype), (0, 1))
        reach = 1
        while reach < total.shape[1]:
            earlier = total[:, :-reach] + weight[:, :-reach] * total[:, reach:]
            total = torch.cat((earlier, total[:, -reach:]), dim=1)
            weight = torch.cat((weight[:, :-reach] * weight[:, reach:], weight[:, -reach:]), dim=1)
            reach *= 2
        return total[:, :-1].contiguous()


actors = 16384
steps = 2048


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(actors, steps), torch.rand(actors, steps) < 0.01, 10 * torch.randn(actors)]


def get_init_inputs() -> list[object]:
    return []
