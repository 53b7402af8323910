"""The outcome of one evaluation. Combinations that make no sense cannot be constructed."""

from __future__ import annotations

from dataclasses import dataclass

from gym_kernel.evaluator.roofline import Roofline
from gym_kernel.evaluator.status import Blame, Status
from gym_kernel.evaluator.timing import Timing

__all__ = ["Agreement", "StageTimes", "Verdict"]


@dataclass(frozen=True)
class StageTimes:
    """Wall-clock time of one evaluation by stage, in seconds.

    Attributes:
        queue_s: Waiting for a worker and for the device.
        load_s: Import, construction and compilation.
        correctness_s: Hidden-seed runs and their comparison.
        timing_s: Verified timing.
        total_s: From the request's arrival at the judge to the verdict.
    """

    queue_s: float = 0.0
    load_s: float = 0.0
    correctness_s: float = 0.0
    timing_s: float = 0.0
    total_s: float = 0.0


@dataclass(frozen=True)
class Agreement:
    """How an output compares with the oracle, over the worst input kind.

    Attributes:
        input_kind: Name of the hidden input kind that was compared.
        elements: Number of elements compared.
        mismatched: Number of elements outside the tolerance (non-finite ones in the wrong place count).
        max_abs_error: Largest absolute error among finite elements.
        max_rel_error: Largest error relative to ``|expected| + scale`` (scale: RMS of the expected output).
        tolerance: The relative error that was allowed.
        rms_error: Root mean square of the relative errors.
        rms_tolerance: What was allowed of that; ``None`` where only the largest error is judged.
        worst_index: Index of the worst element, empty where nothing is wrong.
        worst_actual: Its value in the submission's output (``nan`` allowed).
        first_wrong: Where the first wrong element stands in the output, from 0 to 1; 0 where nothing is wrong.
        first_wrong_column: Where the leftmost wrong element stands in its row, from 0 to 1.
        nan_count: NaN elements in the output.
        inf_count: Infinite elements in the output.
        expected_nonfinite: Elements that are NaN or Inf in the oracle.
    """

    input_kind: str
    elements: int
    mismatched: int
    max_abs_error: float
    max_rel_error: float
    tolerance: float
    rms_error: float = 0.0
    rms_tolerance: float | None = None
    worst_index: tuple[int, ...] = ()
    worst_actual: float | None = None
    first_wrong: float = 0.0
    first_wrong_column: float = 0.0
    nan_count: int = 0
    inf_count: int = 0
    expected_nonfinite: int = 0

    @property
    def passed(self) -> bool:
        """Whether every element agrees, and all of them on the whole."""
        return self.mismatched == 0 and not self.is_biased

    @property
    def is_biased(self) -> bool:
        """Whether the errors are larger on the whole than roundings can make them."""
        return self.rms_tolerance is not None and not self.rms_error <= self.rms_tolerance


@dataclass(frozen=True)
class Verdict:
    """What the judge decided about one submission.

    Attributes:
        status: The outcome.
        task_id: Task that was attempted.
        evaluation_id: Identifier of this evaluation, as in the record.
        device: Id of the device, for instance ``"cuda:0"``.
        isolation: Isolation tier the worker ran under.
        reason: One or two sentences to the policy; empty when correct.
        detail: Compiler output, traceback or captured output, already trimmed; may be empty.
        cheat: Short name of the kind of cheat; empty unless ``status`` is ``CHEATING``.
        agreement: Comparison with the oracle, where one was made.
        runtime: Verified timing of the submission; present exactly when correct.
        reference: Timing of the eager reference, where it is known.
        roofline: Floor of the task on the device, where it is known.
        contended: Whether another process computed on the device meanwhile.
        stages: Wall-clock time by stage.
    """

    status: Status
    task_id: str
    evaluation_id: str
    device: str
    isolation: str
    reason: str = ""
    detail: str = ""
    cheat: str = ""
    agreement: Agreement | None = None
    runtime: Timing | None = None
    reference: Timing | None = None
    roofline: Roofline | None = None
    contended: bool = False
    stages: StageTimes = StageTimes()

    def __post_init__(self) -> None:
        correct = self.status is Status.CORRECT
        if correct and (self.runtime is None or self.roofline is None or self.agreement is None):
            raise ValueError("A correct verdict needs a runtime, a roofline and an agreement.")
        if not correct and self.runtime is not None:
            raise ValueError("Only a correct verdict may carry a runtime.")
        if correct and self.agreement is not None and not self.agreement.passed:
            raise ValueError("A correct verdict cannot carry a failed comparison.")
        if not correct and not self.reason:
            raise ValueError("A verdict that is not correct must give the policy a reason.")
        if bool(self.cheat) != (self.status is Status.CHEATING):
            raise ValueError("A cheat is named exactly when the status is cheating.")

    @property
    def correct(self) -> bool:
        """Whether the submission earned a reward."""
        return self.status is Status.CORRECT

    @property
    def blame(self) -> Blame:
        """Whose doing the outcome is."""
        return self.status.blame

    @property
    def runtime_us(self) -> float | None:
        """Median verified runtime in microseconds, where correct."""
        return self.runtime.median_us if self.runtime else None

    @property
    def roofline_fraction(self) -> float | None:
        """``min(t_min / runtime, 1)``, where correct."""
        if self.runtime is None or self.roofline is None:
            return None
        return self.roofline.fraction(self.runtime.median_us)

    @property
    def speedup(self) -> float | None:
        """Eager reference time over the submission's, where both are known."""
        if self.runtime is None or self.reference is None:
            return None
        return self.reference.median_us / self.runtime.median_us
