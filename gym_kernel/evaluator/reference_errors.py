"""How far a task's reference is from its own float64 run: what submissions are measured by.

The usual errors are measured once for a task, at inputs and parameters that are the same in every judge, so that a
verdict depends on its own seed and on nothing that was judged before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gym_kernel.evaluator.error_bound import ErrorSize, is_well_posed
from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.evaluator.input_set import InputSet
from gym_kernel.evaluator.steadiness import is_steady

if TYPE_CHECKING:
    from gym_kernel.evaluator.reference_bench import Expected, ReferenceBench

__all__ = ["Errors", "ReferenceErrors"]

#: One for each output; ``None`` where inputs are not fit to judge by.
Errors = tuple[ErrorSize, ...] | None

_SEEDS = range(7_000, 7_020)
# Where one of so many draws is fit, the kind is: a submission that fails where another is not goes unpunished.
_DRAWS = 3


class ReferenceErrors:
    """The errors of one task's reference and its accepted forms.

    Args:
        bench: The reference, with its constructed parameters.
    """

    def __init__(self, bench: ReferenceBench) -> None:
        self._bench = bench
        self._usual: dict[tuple[InputKind, int, int], Errors] = {}

    def measure(self) -> None:
        """Measure the usual errors.

        Raises:
            TaskError: The reference fails on one of the kinds of inputs.
        """
        inputs = self._bench.new_input_set()
        try:
            for kind in self._bench.kinds:
                for seed in self._seeds(kind, inputs):
                    self._bench.write_inputs(inputs, kind, seed)
                    for form in self._bench.forms:
                        key = (kind, inputs.variant, form)
                        if self._usual.get(key) is None:
                            self._usual[key] = self.at(kind, inputs, self._bench.expected(inputs, form), form)
        finally:
            self._bench.arenas.release(inputs.arena)

    def _seeds(self, kind: InputKind, inputs: InputSet) -> Iterator[int]:
        """Seeds at which to measure: as many of each variant as are needed to find fit inputs."""
        drawn: dict[int, int] = {}
        for seed in _SEEDS:
            variant = inputs.variant_of(kind, seed)
            known = [self._usual.get((kind, variant, form)) for form in self._bench.forms]
            if drawn.get(variant, 0) < _DRAWS and None in known:
                drawn[variant] = drawn.get(variant, 0) + 1
                yield seed

    def usual(self, kind: InputKind, variant: int = 0, form: int = 0) -> Errors:
        """The usual errors on a kind of inputs.

        Args:
            kind: The kind.
            variant: That of the inputs.
            form: Which of the accepted functions.

        Returns:
            One error for each output, or ``None`` where the kind is not fit to judge by on this task.
        """
        return self._usual[kind, variant, form]

    def at(self, kind: InputKind, inputs: InputSet, expected: Expected, form: int = 0) -> Errors:
        """The errors at some inputs with the parameters of now, which may be larger than usual.

        Args:
            kind: Kind of the inputs.
            inputs: The inputs.
            expected: What the form's reference makes of them.
            form: Which of the accepted functions.

        Returns:
            One error for each output, or ``None`` where these inputs are not fit to judge by.
        """
        bench = self._bench
        agreements = bench.against_oracle(expected.outputs, kind, inputs, expected, None, form)
        errors = tuple(
            ErrorSize(agreement.max_rel_error, agreement.rms_error)
            if agreement.expected_nonfinite == 0 or agreement.mismatched == 0
            else ErrorSize(math.inf, math.inf)
            for agreement in agreements
        )
        if not all(is_well_posed(o.dtype, e.largest) for o, e in zip(expected.outputs, errors, strict=True)):
            return None
        if kind is not InputKind.OFFICIAL and any(agreement.nan_count for agreement in agreements):
            # A row of zeros divided by its norm, say: a submission that guards against it is no less right.
            return None
        if kind is InputKind.HUGE:
            # Outputs beyond the range of their dtype, or at its edge, depend on the order of the sums.
            overflows = any(agreement.expected_nonfinite for agreement in agreements)
            if overflows or not is_steady(
                lambda arguments: bench.oracle_outputs(arguments, form),
                inputs.arguments(),
                bench.domains,
                expected.scales,
            ):
                return None
        return errors
