"""When a time cannot be true."""

from __future__ import annotations

from gym_kernel.evaluator.outcome import Outcome, OutcomeError
from gym_kernel.evaluator.roofline import Roofline
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.timing import Timing

__all__ = ["clock_mismatch", "refuse_impossible"]


def refuse_impossible(timing: Timing, roofline: Roofline) -> None:
    """Refuse a time that no kernel can have on this device.

    Raises:
        OutcomeError: The median is below the roofline's floor.
    """
    if timing.median_us < roofline.floor_us:
        reason = (
            f"A median of {timing.median_us:.2f} us is below {roofline.floor_us:.2f} us, which the memory system needs "
            "for the bytes of this task alone; the work cannot have been done in it."
        )
        raise OutcomeError(Outcome(Status.CHEATING, reason=reason, cheat="below_roofline_floor"))


def clock_mismatch(doubt: str) -> Outcome:
    """What becomes of a submission whose claims the judge's clock contradicts.

    Args:
        doubt: What contradicts them, as a sentence.
    """
    reason = (
        f"{doubt} Either work is left on streams that forward does not join, or the clock in the worker was tampered "
        "with."
    )
    return Outcome(Status.CHEATING, reason=reason, cheat="clock_mismatch")
