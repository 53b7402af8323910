"""How an evaluation can end, and who is to blame for it."""

from __future__ import annotations

from enum import Enum

__all__ = ["Blame", "Status"]


class Blame(str, Enum):
    """Whose doing an outcome is."""

    NOBODY = "nobody"
    SUBMISSION = "submission"
    INFRASTRUCTURE = "infrastructure"


class Status(str, Enum):
    """The nine ways an evaluation ends.

    Only ``CORRECT`` earns a reward. ``INFRASTRUCTURE_ERROR`` is never the policy's fault, so a
    learner should drop the sample instead of learning from it.
    """

    CORRECT = "correct"
    INCORRECT = "incorrect"
    REJECTED = "rejected"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    CHEATING = "cheating"
    INFRASTRUCTURE_ERROR = "infrastructure_error"

    @property
    def blame(self) -> Blame:
        """Whose doing this outcome is."""
        if self is Status.CORRECT:
            return Blame.NOBODY
        if self is Status.INFRASTRUCTURE_ERROR:
            return Blame.INFRASTRUCTURE
        return Blame.SUBMISSION
