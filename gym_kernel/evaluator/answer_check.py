"""Whether a submission's outputs are the task's answer."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gym_kernel.evaluator.error_bound import ErrorSize
from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.evaluator.input_set import InputSet
from gym_kernel.evaluator.numerics import Comparison
from gym_kernel.evaluator.outcome import Outcome, OutcomeError
from gym_kernel.evaluator.reference_bench import Expected, ReferenceBench
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.verdict import Agreement

__all__ = ["AnswerCheck"]


class AnswerCheck:
    """Compares a submission's outputs with what the reference stands for.

    Where a task accepts several forms of its function, a submission must hold to one of them throughout. Nobody is
    refused for a disagreement with rounded values: the float64 oracle has the last word, and where the reference
    itself is far from it at the inputs in hand, nothing is held against anybody.

    Args:
        bench: The task's reference.
    """

    def __init__(self, bench: ReferenceBench) -> None:
        self._bench = bench
        self._forms = list(bench.forms)

    def check(
        self,
        outputs: Sequence[torch.Tensor],
        kind: InputKind,
        inputs: InputSet,
        *,
        when: str = "on hidden inputs",
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
            errors = self._bench.reference_errors(kind, inputs, expected, form)
            if errors is None:
                return None
            worst = self._worst(outputs, kind, inputs, expected, errors, form)
            if not worst.passed:
                # The reference may be further off here than where it was measured.
                errors = self._bench.measure_again(kind, inputs, expected, form)
                if errors is None:
                    return None
                worst = self._worst(outputs, kind, inputs, expected, errors, form)
            if worst.passed:
                kept.append(form)
                passed = passed or worst
            else:
                failed = failed or worst
        if passed is None:
            assert failed is not None, "There is always a form in question."
            raise OutcomeError(Outcome(Status.INCORRECT, reason=f"Wrong values {when}.", agreement=failed))
        self._forms = kept
        return passed

    def check_timed(self, outputs: Sequence[torch.Tensor], kind: InputKind, inputs: InputSet) -> None:
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
        errors = self._bench.reference_errors(kind, inputs, expected, form)
        if errors is None:  # The kind was fit to judge by at other values than these.
            return
        if not self._agrees_with_reference(outputs, kind, expected, errors):
            self.check(outputs, kind, inputs, when="in a timed call")

    def _worst(
        self,
        outputs: Sequence[torch.Tensor],
        kind: InputKind,
        inputs: InputSet,
        expected: Expected,
        errors: tuple[ErrorSize, ...],
        form: int,
    ) -> Agreement:
        agreements = self._bench.against_oracle(outputs, kind, inputs, expected, errors, form)
        return max(agreements, key=lambda a: (not a.passed, a.mismatched > 0, a.max_rel_error))

    def _agrees_with_reference(
        self,
        outputs: Sequence[torch.Tensor],
        kind: InputKind,
        expected: Expected,
        errors: tuple[ErrorSize, ...],
    ) -> bool:
        for actual, exact, scale, error in zip(
            outputs, expected.outputs, expected.scales, errors, strict=True
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
            if not comparison.agreement().passed:
                return False
        return True
