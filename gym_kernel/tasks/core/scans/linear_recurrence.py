"""First-order linear recurrence over time, float32."""

import torch
from torch import nn

TASK = {
    "level": 3,
    "shapes": {
        "ssm": {
            "official": {"batch": 8, "time": 4096, "channels": 1024},
            "small": {"batch": 2, "time": 64, "channels": 128},
        },
        "long": {
            "official": {"batch": 1, "time": 65536, "channels": 512},
            "small": {"batch": 2, "time": 257, "channels": 32},
        },
        "odd": {
            "official": {"batch": 13, "time": 2999, "channels": 777},
            "small": {"batch": 3, "time": 67, "channels": 77},
        },
    },
    "domains": [[0.0, 1.0], "any"],
    "tolerance": {"reduction_length": 256},
    "flops_per_element": 1.9,
    "rows_independent": True,
}


class Model(nn.Module):
    """``h_t = a_t * h_(t-1) + b_t`` with ``h_(-1) = 0``, for each channel of each sample.

    Computed in ``log2(time)`` doubling steps (Hillis and Steele, "Data parallel algorithms", 1986): ``(a, b)`` after
    ``(a', b')`` is ``(a a', a b' + b)``.
    """

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        state, decay = b, a
        reach = 1
        while reach < b.shape[1]:
            later = state[:, reach:] + decay[:, reach:] * state[:, :-reach]
            state = torch.cat((state[:, :reach], later), dim=1)
            decay = torch.cat((decay[:, :reach], decay[:, reach:] * decay[:, :-reach]), dim=1)
            reach *= 2
        return state


batch = 8
time = 4096
channels = 1024


def get_inputs() -> list[torch.Tensor]:
    # Channels that remember two steps, and channels that remember a hundred.
    slowest = 1 - 0.5 * torch.rand(channels).square()
    a = slowest - 0.01 * torch.rand(batch, time, channels)
    return [a, torch.randn(batch, time, channels)]


def get_init_inputs() -> list[object]:
    return []
