import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    """Piecewise linear tanh: every element clamped to [-1, 1]."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.hardtanh(x, min_val=-1.0, max_val=1.0)


batch_size = 4096
dim = 393216


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(batch_size, dim)]


def get_init_inputs() -> list[object]:
    return []
