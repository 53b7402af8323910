"""Mutants: the reference itself with something left out or done worse, which a sound task must refuse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from gym_kernel.linter.observer import Clamp, WithoutClamp
from gym_kernel.linter.report import Rule, Severity
from gym_kernel.linter.rounding import LOWER_PRECISIONS, rounded
from gym_kernel.linter.workbench import Sample, Workbench, tensors_of

__all__ = ["InputsRounded", "WithoutOneClamp", "mutants"]

Outputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class InputsRounded:
    """The reference on inputs of a precision below that of its outputs.

    Attributes:
        precision: Name of that precision.
        bits: Significant bits of all floating-point inputs afterwards, if they have more.
        severity: Worse for tasks of matrix products, where lower precision is faster.
    """

    precision: str
    bits: int
    severity: Severity
    rule: Rule = Rule.LOWER_PRECISION

    @property
    def name(self) -> str:
        """What it is."""
        return f"the reference on inputs rounded to {self.precision}"

    def outputs(self, workbench: Workbench, sample: Sample) -> Outputs | None:
        """Its outputs; ``None`` where rounding changes nothing."""
        tensors = tensors_of(sample.inputs)
        lower = {i: rounded(t, self.bits) for i, t in enumerate(tensors) if t.is_floating_point()}
        if all(torch.equal(value, tensors[i]) for i, value in lower.items()):
            return None
        with workbench.replaced(sample, lower):
            return workbench.bench.expected(sample.inputs).outputs


@dataclass(frozen=True)
class WithoutOneClamp:
    """The reference with every occurrence of one clamp left out.

    Attributes:
        clamp: Which.
    """

    clamp: Clamp
    severity: Severity = Severity.ERROR
    rule: Rule = Rule.MISSING_CLAMP

    @property
    def name(self) -> str:
        """What it is."""
        operator, bounds = self.clamp
        return f"the reference without its {operator}({bounds})"

    def outputs(self, workbench: Workbench, sample: Sample) -> Outputs | None:
        """Its outputs."""
        with WithoutClamp(self.clamp):
            return workbench.bench.expected(sample.inputs).outputs


def mutants(
    official: Sample, clamps: tuple[Clamp, ...], has_products: bool
) -> Iterator[InputsRounded | WithoutOneClamp]:
    """The mutants of a task.

    Args:
        official: A sample of official inputs.
        clamps: What the reference cuts off.
        has_products: Whether it computes matrix products or convolutions.
    """
    severity = Severity.ERROR if has_products else Severity.WARNING
    for precision, bits in _lower_precisions(official):
        yield InputsRounded(precision, bits, severity)
    for clamp in clamps:
        yield WithoutOneClamp(clamp)


def _lower_precisions(official: Sample) -> tuple[tuple[str, int], ...]:
    """Those below the most precise of the outputs, or of the inputs where no output is floating-point."""
    for tensors in (official.expected.outputs, tensors_of(official.inputs)):
        dtypes = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
        if dtypes:
            finest = min(dtypes, key=lambda dtype: torch.finfo(dtype).eps)
            return LOWER_PRECISIONS.get(finest, ())
    return ()
