"""What outputs are allowed beyond a task's own tolerance, by the kind of inputs."""

from __future__ import annotations

from dataclasses import replace

from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.tasks.task import Tolerance

__all__ = ["tolerance_on"]

# What float32 loses of values between 3 and 9, several times over: forms that cancel there are honest all the same.
_TAIL_ABSOLUTE = 1e-5
_REASON = "Where all outputs are small, what float32 arithmetic loses on the way is not small beside them."


def tolerance_on(kind: InputKind, own: Tolerance) -> Tolerance:
    """The tolerance for outputs on a kind of inputs.

    Args:
        kind: The kind of inputs.
        own: The task's tolerance.
    """
    if kind is not InputKind.NEGATIVE_TAIL or own.absolute >= _TAIL_ABSOLUTE:
        return own
    return replace(own, absolute=_TAIL_ABSOLUTE, reason=own.reason or _REASON)
