import torch
from torch import nn


class Model(nn.Module):
    """Logarithm of the softmax over the columns (dimension 1) of a matrix."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(x, dim=1)


batch_size = 4096
dim = 393216


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(batch_size, dim)]


def get_init_inputs() -> list[object]:
    return []
