"""Hidden inputs for tests of them: one kind of values in one tensor."""

from __future__ import annotations

import math

import torch

from gym_kernel.evaluator.input_kinds import InputKind, fill
from gym_kernel.tasks.task import Domain

__all__ = ["COLUMNS", "ROWS", "WITH_ROWS_OF_ZEROS", "generator", "made"]

ROWS, COLUMNS = 32, 1024
WITH_ROWS_OF_ZEROS = (InputKind.SPARSE, InputKind.SMALL_SCALE)
_REAL_LINE = Domain()


def generator(seed: int = 0) -> torch.Generator:
    """A generator on the CPU."""
    return torch.Generator().manual_seed(seed)


def made(
    kind: InputKind,
    domain: Domain = _REAL_LINE,
    shape: tuple[int, ...] = (ROWS, COLUMNS),
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """A tensor of one kind of values."""
    tensor = torch.full(shape, math.nan, dtype=dtype)
    fill(tensor, kind, domain, generator(seed))
    return tensor
