"""Null candidates: cheap impostors of a function, which a sound task must refuse.

Each makes one output out of inputs and expected values, without the function. Some know more than any
submission could (the mean of what is expected); where even these fail, less knowing ones do as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from gym_kernel.linter.report import Rule
from gym_kernel.linter.rounding import LOWER_PRECISIONS, rounded
from gym_kernel.linter.workbench import Sample, tensors_of

__all__ = ["NullCandidate", "null_candidates"]

_FITTED_ELEMENTS = 1 << 20
_ROUNDED_ELEMENTS = 64

Make = Callable[[Sample], torch.Tensor | None]


@dataclass(frozen=True)
class NullCandidate:
    """An impostor for one output.

    Attributes:
        name: What it does, as the object of "is reproduced by".
        output: Position of the output that it makes.
        make: Its output for a sample; ``None`` where it has no meaning, or is exactly right by construction.
        rule: The rule that is broken where it passes.
    """

    name: str
    output: int
    make: Make
    rule: Rule = Rule.NULL_CANDIDATE


def null_candidates(official: Sample) -> list[NullCandidate]:
    """The impostors for each output of a task.

    Args:
        official: A sample of official inputs, on which lines are fitted.
    """
    return [
        candidate for output in range(len(official.expected.outputs)) for candidate in _for(official, output)
    ]


def _for(official: Sample, output: int) -> Iterator[NullCandidate]:
    def expected(sample: Sample) -> torch.Tensor:
        return sample.expected.outputs[output]

    yield NullCandidate("zeros", output, lambda sample: torch.zeros_like(expected(sample)))
    yield NullCandidate("ones", output, lambda sample: torch.ones_like(expected(sample)))
    yield NullCandidate("the mean of the whole output", output, lambda sample: _mean(expected(sample)))
    yield NullCandidate("the mean of each row", output, lambda sample: _row_mean(expected(sample)))
    yield NullCandidate("its first row for all rows", output, lambda sample: _first_row(expected(sample)))
    yield NullCandidate("its first half, then zeros", output, lambda sample: _half(expected(sample)))
    yield NullCandidate(
        "itself with the last column zero", output, lambda sample: _zeroed(expected(sample), -1)
    )
    yield NullCandidate("itself with the last row zero", output, lambda sample: _zeroed(expected(sample), 0))
    yield NullCandidate(
        "the output for other inputs of the same kind", output, lambda sample: sample.other.outputs[output]
    )
    for position, tensor in enumerate(tensors_of(official.inputs)):
        if tensor.numel() == expected(official).numel():
            yield from _from_input(official, output, position)
    for name, bits in LOWER_PRECISIONS.get(expected(official).dtype, ()):
        yield NullCandidate(f"itself rounded to {name}", output, _Rounded(output, bits), Rule.LOWER_PRECISION)


def _from_input(official: Sample, output: int, position: int) -> Iterator[NullCandidate]:
    def source(sample: Sample) -> torch.Tensor:
        expected = sample.expected.outputs[output]
        return tensors_of(sample.inputs)[position].to(expected.dtype).reshape(expected.shape)

    def half_source(sample: Sample) -> torch.Tensor | None:
        return _half(sample.expected.outputs[output], source(sample))

    named = f"input {position}"
    yield NullCandidate(named, output, source)
    yield NullCandidate(f"its first half, then {named}", output, half_source)
    if official.expected.outputs[output].is_floating_point():
        yield NullCandidate(f"minus {named}", output, lambda sample: source(sample).neg())
        yield NullCandidate(f"the absolute value of {named}", output, lambda sample: source(sample).abs())
        x, y = _thinned(source(official)), _thinned(official.expected.outputs[output])
        offset = float((y - x).mean())
        yield NullCandidate(f"{named} shifted by {offset:.3g}", output, _Line(source, 1.0, offset))
        slope, intercept = _best_line(x, y)
        yield NullCandidate(
            f"the line {slope:.3g} * x + {intercept:.3g} of {named}", output, _Line(source, slope, intercept)
        )


@dataclass(frozen=True)
class _Rounded:
    output: int
    bits: int

    def __call__(self, sample: Sample) -> torch.Tensor | None:
        expected = sample.expected.outputs[self.output]
        lower = rounded(expected, self.bits)
        # Of a few values all may happen to be close to a rounded one.
        few = expected.numel() < _ROUNDED_ELEMENTS
        return None if few or torch.equal(lower, expected) else lower


@dataclass(frozen=True)
class _Line:
    source: Callable[[Sample], torch.Tensor]
    slope: float
    intercept: float

    def __call__(self, sample: Sample) -> torch.Tensor:
        return self.source(sample) * self.slope + self.intercept


def _mean(expected: torch.Tensor) -> torch.Tensor | None:
    if expected.numel() < 2 or not expected.is_floating_point():
        return None
    return torch.full_like(expected, float(_finite(expected).mean(dtype=torch.float64)))


def _row_mean(expected: torch.Tensor) -> torch.Tensor | None:
    if expected.dim() < 1 or expected.shape[-1] < 2 or not expected.is_floating_point():
        return None
    wide = torch.promote_types(expected.dtype, torch.float32)
    mean = _finite(expected).mean(dim=-1, keepdim=True, dtype=wide)
    return mean.to(expected.dtype).expand_as(expected).contiguous()


def _first_row(expected: torch.Tensor) -> torch.Tensor | None:
    if expected.dim() < 1 or expected.shape[0] < 2:
        return None
    return expected[:1].expand_as(expected).contiguous()


def _half(expected: torch.Tensor, rest: torch.Tensor | None = None) -> torch.Tensor | None:
    if expected.numel() < 2:
        return None
    middle = expected.numel() // 2
    first, second = expected.reshape(-1)[:middle], (expected if rest is None else rest).reshape(-1)[middle:]
    made = torch.cat((first, torch.zeros_like(second) if rest is None else second))
    return made.reshape(expected.shape)


def _zeroed(expected: torch.Tensor, dim: int) -> torch.Tensor | None:
    if expected.dim() < 1 or expected.shape[dim] < 2:
        return None
    made = expected.clone()
    made.select(dim, -1).zero_()
    return made


def _finite(tensor: torch.Tensor) -> torch.Tensor:
    return torch.nan_to_num(tensor, nan=0.0, posinf=0.0, neginf=0.0)


def _thinned(tensor: torch.Tensor) -> torch.Tensor:
    """At most about a million of the values, finite and float64."""
    step = max(1, tensor.numel() // _FITTED_ELEMENTS)
    return _finite(tensor.reshape(-1)[::step].double())


def _best_line(x: torch.Tensor, y: torch.Tensor) -> tuple[float, float]:
    """Slope and intercept of the least-squares line."""
    spread = float(x.var(correction=0))
    slope = float(((x - x.mean()) * (y - y.mean())).mean()) / spread if spread else 0.0
    return slope, float(y.mean()) - slope * float(x.mean())
