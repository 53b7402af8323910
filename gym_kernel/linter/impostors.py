"""All impostors of a task, tried on one kind of inputs after another until the judge would refuse each."""

from __future__ import annotations

from collections.abc import Iterator

from gym_kernel.linter.mutants import InputsRounded, WithoutOneClamp, mutants
from gym_kernel.linter.null_candidates import NullCandidate, null_candidates
from gym_kernel.linter.observer import Clamp
from gym_kernel.linter.report import Finding, Rule, Severity
from gym_kernel.linter.workbench import Sample, Workbench

__all__ = ["Impostors"]

_REMEDIES = {
    Rule.NULL_CANDIDATE: "Change the function, its official inputs or its domains so that some kind of inputs "
    "tells them apart.",
    Rule.LOWER_PRECISION: "Lower the tolerance (reduction_length, absolute), or let fewer terms average the "
    "rounding away.",
    Rule.MISSING_CLAMP: "Let official inputs or the domain reach beyond the bounds, or leave the clamp out.",
}

Impostor = NullCandidate | InputsRounded | WithoutOneClamp


class Impostors:
    """Null candidates and mutants that have not been refused yet.

    Args:
        workbench: The task.
        official: A sample of its official inputs.
        clamps: What its reference cuts off.
        has_products: Whether it computes matrix products or convolutions.
    """

    def __init__(
        self, workbench: Workbench, official: Sample, clamps: tuple[Clamp, ...], has_products: bool
    ) -> None:
        self._workbench = workbench
        self._unrefused: list[Impostor] = [
            *null_candidates(official),
            *mutants(official, clamps, has_products),
        ]
        self._tried: set[int] = set()
        self._outputs = len(official.expected.outputs)
        self.count = len(self._unrefused)

    def face(self, sample: Sample) -> None:
        """Judge those that are left on a sample; whoever is refused is out."""
        self._unrefused = [impostor for impostor in self._unrefused if not self._refused(impostor, sample)]

    def findings(self) -> Iterator[Finding]:
        """One for each that no kind of inputs gave away."""
        for impostor in self._unrefused:
            if id(impostor) in self._tried:
                yield self._finding(impostor)

    def _refused(self, impostor: Impostor, sample: Sample) -> bool:
        if isinstance(impostor, NullCandidate):
            made = impostor.make(sample)
            passed = None if made is None else self._workbench.agrees(sample, impostor.output, made)
        else:
            outputs = impostor.outputs(self._workbench, sample)
            passed = None if outputs is None else self._workbench.same(sample, outputs)
        if passed is None:
            return False
        self._tried.add(id(impostor))
        return not passed

    def _finding(self, impostor: Impostor) -> Finding:
        if isinstance(impostor, NullCandidate):
            what = "The output" if self._outputs == 1 else f"Output {impostor.output}"
            severity = Severity.ERROR
        else:
            what, severity = "The output", impostor.severity
        return Finding(
            impostor.rule,
            severity,
            f"{what} is reproduced by {impostor.name} on every kind of inputs. {_REMEDIES[impostor.rule]}",
        )
