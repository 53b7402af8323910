"""What an evaluation has come to, before it is made a verdict."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from gym_kernel.evaluator.processes import exit_text
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.timing import Timing
from gym_kernel.evaluator.verdict import Agreement
from gym_kernel.evaluator.worker_messages import Failed, FailureKind

__all__ = ["Outcome", "OutcomeError", "blame_failure", "outcome_of_exit"]

_STATUS_OF = {
    FailureKind.SOURCE: Status.REJECTED,
    FailureKind.COMPILE: Status.COMPILE_ERROR,
    FailureKind.RUNTIME: Status.RUNTIME_ERROR,
    FailureKind.MEMORY: Status.RUNTIME_ERROR,
    FailureKind.CONTRACT: Status.INCORRECT,
}


@dataclass(frozen=True)
class Outcome:
    """Status and evidence of an evaluation; see :class:`~gym_kernel.evaluator.verdict.Verdict`."""

    status: Status
    reason: str = ""
    detail: str = ""
    cheat: str = ""
    agreement: Agreement | None = None
    runtime: Timing | None = None
    contended: bool = False
    out_of_memory: bool = False

    @classmethod
    def tampering(cls, what: str) -> Outcome:
        """The worker said something that only a submission that meddles with it can make it say."""
        return cls(
            Status.CHEATING,
            reason="The worker's channel was tampered with; a submission has no business there.",
            detail=what,
            cheat="tampering",
        )


class OutcomeError(Exception):
    """Ends an evaluation early.

    Attributes:
        outcome: What it has come to.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


def blame_failure(claim: Failed) -> Outcome:
    """Turn a worker's own report of failure into an outcome."""
    return Outcome(
        _STATUS_OF[claim.kind],
        reason=claim.message,
        detail=claim.detail,
        out_of_memory=claim.kind is FailureKind.MEMORY,
    )


def outcome_of_exit(status: int | None, when: str) -> Outcome:
    """Outcome of a worker whose process ended.

    Args:
        status: Wait status, or ``None`` where it was not learnt.
        when: A few words on what was going on.
    """
    if status is None:
        return Outcome(Status.CRASHED, reason=f"The process ended {when}.")
    reason = f"The process {exit_text(status)} {when}."
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGSEGV, signal.SIGBUS):
        reason += " It touched memory outside its tensors."
    elif os.WIFEXITED(status):
        reason += " A submission must return from forward, not end its process."
    return Outcome(Status.CRASHED, reason=reason)
