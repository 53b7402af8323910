"""Whether a function's outputs change little when its inputs do, so that rounding alone cannot change them much."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from gym_kernel.evaluator.numerics import Comparison
from gym_kernel.tasks.task import Domain, Tolerance

__all__ = ["is_steady"]

# Outputs may change fifty times as much (relatively) as inputs. Where they change more, as a softmax of values in the
# thousands does, two honest kernels may differ by more than any tolerance.
_NUDGE, _ALLOWED = 1e-3, 0.05


@torch.no_grad()
def is_steady(
    oracle: Callable[[list[Any]], Iterator[list[torch.Tensor]]],
    arguments: Sequence[Any],
    domains: Sequence[Domain],
    scales: Sequence[float],
) -> bool:
    """Compare an oracle's outputs with those for inputs that are up to a thousandth larger.

    Args:
        oracle: From arguments of ``forward`` to slices of its outputs in float64.
        arguments: Arguments of ``forward``. Tensors of a bounded domain are left alone: beyond its edges nothing is
            defined, and on them values are exact.
        domains: One domain for each tensor argument.
        scales: RMS of each output.

    Returns:
        Whether every floating-point output stays near to what it was.
    """
    comparisons = [Comparison(torch.float64, scale=scale, tolerance=Tolerance()) for scale in scales]
    slices = zip(oracle(list(arguments)), oracle(_nudged(arguments, domains)), strict=True)
    for outputs, others in slices:
        for comparison, output, other in zip(comparisons, outputs, others, strict=True):
            if output.is_floating_point():
                comparison.add(other, output)
    return all(comparison.largest <= _ALLOWED for comparison in comparisons)


def _nudged(arguments: Sequence[Any], domains: Sequence[Domain]) -> list[Any]:
    remaining = iter(domains)
    return [a if not isinstance(a, torch.Tensor) else _scaled(a, next(remaining)) for a in arguments]


def _scaled(tensor: torch.Tensor, domain: Domain) -> torch.Tensor:
    if domain.fixed or not tensor.is_floating_point() or math.isfinite(domain.high - domain.low):
        return tensor
    generator = torch.Generator(tensor.device).manual_seed(0)
    factor = torch.empty_like(tensor, dtype=torch.float64).uniform_(generator=generator)
    return factor.mul_(_NUDGE).add_(1.0).mul_(tensor)
