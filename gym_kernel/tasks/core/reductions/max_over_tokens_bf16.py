"""Maximum over the middle dimension with the index of the first one, bfloat16."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "pooling": {
            "official": {"batch": 64, "tokens": 1024, "channels": 1024},
            "small": {"batch": 4, "tokens": 32, "channels": 128},
        },
        "long": {
            "official": {"batch": 2, "tokens": 65536, "channels": 512},
            "small": {"batch": 2, "tokens": 301, "channels": 64},
        },
        "odd": {
            "official": {"batch": 61, "tokens": 997, "channels": 1001},
            "small": {"batch": 3, "tokens": 43, "channels": 101},
        },
    },
    # The outputs are copies or indices: values may be of any size, and no number stands for infinity.
    "domains": [[-1e29, 1e29]],
    "flops_per_element": 15,
    # The maximum is one of the inputs: where all outputs lie close together, a loose bound lets float8 pass.
    "tolerance": {"cap": 0.005},
    "rows_independent": True,
}


class Model(nn.Module):
    """``(max_t x_btc, min {t : x_btc = max_s x_bsc})``; the index is int64, of equal maxima the first counts."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = x.shape[1]
        index = torch.arange(tokens, device=x.device)[:, None]
        largest = x.amax(dim=1)
        return largest, torch.where(x == largest[:, None], index, tokens).amin(dim=1)


batch = 64
tokens = 1024
channels = 1024


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, tokens, channels, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
