"""Whether a submission's outputs are the task's answer."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gym_kernel.evaluator.error_bound import ErrorSize
from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.evaluator.input_set import InputSet
from gym_kernel.evaluator.numerics import Comparison
from gym_kernel.evaluator.outcome import Outcome, OutcomeError
from gym_kernel.evaluator.reference_bench import Expected, ReferenceBench
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.verdict import Agreement

__all__ = ["AnswerCheck", "TakenOutputs"]

_HIDDEN = "on hidden inputs"
_TIMED = "in a timed call"


@dataclass(frozen=True)
class TakenOutputs:
    """A submission's outputs as the judge holds them.

    Attributes:
        tensors: One for each output.
        are_copies: They are the judge's own. The worker's memory can change until the worker is dead, so what stands
            in it is looked at once.
    """

    tensors: tuple[torch.Tensor, ...]
    are_copies: bool


class AnswerCheck:
    """Compares a submission's outputs with what the reference stands for.

    Where a task accepts several forms of its function, a submission must hold to one of them throughout. Nobody is
    refused for a disagreement with rounded values: the float64 oracle has the last word, and where the reference
    itself is far from it at the inputs in hand, nothing is held against anybody. (But for outputs that are too large to
    be copied, which may not be looked at twice.)

    Args:
        bench: The task's reference.
    """

    def __init__(self, bench: ReferenceBench) -> None:
        self._bench = bench
        self._forms = list(bench.forms)

    def check(
        self,
        outputs: TakenOutputs,
        kind: InputKind,
        inputs: InputSet,
        *,
        when: str = _HIDDEN,
    ) -> Agreement | None:
        """Compare outputs with the oracle in every form that is still in question, and keep those that agree.

        Args:
            outputs: The submission's outputs.
            kind: Kind of the inputs.
            inputs: What it was called on.
            when: Words for a refusal.

        Returns:
            The worst agreement with the first form that agrees; ``None`` where the inputs are not fit to judge by.

        Raises:
            OutcomeError: The outputs agree with none.
        """
        kept: list[int] = []
        passed: Agreement | None = None
        failed: Agreement | None = None
        for form in self._forms:
            expected = self._bench.expected(inputs, form)
            errors = self._bench.errors.usual(kind, inputs.variant, form)
            if errors is None:
                return None
            worst = self._worst(outputs, kind, inputs, expected, errors, form)
            if not worst.passed:
                # The reference may be further off here than where it was measured.
                here = self._bench.errors.at(kind, inputs, expected, form)
                if here is None:
                    return None
                if outputs.are_copies:
                    errors = tuple(map(ErrorSize.joined, errors, here))
                    worst = self._worst(outputs, kind, inputs, expected, errors, form)
            if worst.passed:
                kept.append(form)
                passed = passed or worst
            else:
                failed = failed or worst
        if passed is None:
            assert failed is not None, "There is always a form in question."
            raise OutcomeError(_wrong(failed, when))
        self._forms = kept
        return passed

    def check_timed(self, outputs: TakenOutputs, kind: InputKind, inputs: InputSet) -> None:
        """Compare the outputs of a timed call, with the reference first, as the oracle takes far longer.

        Args:
            outputs: The submission's outputs.
            kind: Kind of the inputs.
            inputs: What it was called on.

        Raises:
            OutcomeError: The outputs are wrong.
        """
        # Where several forms agreed with every kind, the first stands for all of them.
        form = self._forms[0]
        expected = self._bench.expected(inputs, form)
        errors = self._bench.errors.usual(kind, inputs.variant, form)
        if errors is None:  # The kind was fit to judge by at other values than these.
            return
        failed = self._disagreement_with_reference(outputs, kind, expected, errors)
        if failed is None:
            return
        if outputs.are_copies:
            self.check(outputs, kind, inputs, when=_TIMED)
        elif self._bench.errors.at(kind, inputs, expected, form) is not None:
            raise OutcomeError(_wrong(failed, _TIMED))

    def _worst(
        self,
        outputs: TakenOutputs,
        kind: InputKind,
        inputs: InputSet,
        expected: Expected,
        errors: tuple[ErrorSize, ...],
        form: int,
    ) -> Agreement:
        agreements = self._bench.against_oracle(outputs.tensors, kind, inputs, expected, errors, form)
        return max(agreements, key=lambda a: (not a.passed, a.mismatched > 0, a.max_rel_error))

    def _disagreement_with_reference(
        self, outputs: TakenOutputs, kind: InputKind, expected: Expected, errors: tuple[ErrorSize, ...]
    ) -> Agreement | None:
        for actual, exact, scale, error in zip(
            outputs.tensors, expected.outputs, expected.scales, errors, strict=True
        ):
            comparison = Comparison(
                actual.dtype,
                scale=scale,
                tolerance=self._bench.tolerance(kind),
                # Here the reference stands in for the oracle, so its own error comes on top.
                reference_error=error.doubled(),
                input_kind=kind.value,
                shape=tuple(actual.shape),
            )
            comparison.add(actual, exact)
            agreement = comparison.agreement()
            if not agreement.passed:
                return agreement
        return None


def _wrong(agreement: Agreement, when: str) -> Outcome:
    return Outcome(Status.INCORRECT, reason=f"Wrong values {when}.", agreement=agreement)
