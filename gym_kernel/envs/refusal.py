"""Verdicts about submissions that never reach the judge.

Everything else about a submission is decided by the judge.
"""

from __future__ import annotations

from gym_kernel.evaluator.briefing import Briefing
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.submission import Submission
from gym_kernel.evaluator.verdict import Verdict

__all__ = ["objection", "refuse", "unevaluated"]


def objection(code: str, max_code_chars: int) -> str:
    r"""Why code is not worth sending to the judge, in a sentence to the policy; empty if it is.

    Args:
        code: Code taken out of a reply.
        max_code_chars: Longest code accepted, in characters.

    Example:
        >>> objection("class ModelNew: ...", 100)
        ''
        >>> objection("  \n", 100)
        'The reply holds no code. Reply with one fenced Python block that defines class ModelNew.'
    """
    if not code.strip():
        return "The reply holds no code. Reply with one fenced Python block that defines class ModelNew."
    if len(code) > max_code_chars:
        return (
            f"The code is {len(code):,} characters long and at most {max_code_chars:,} are accepted. "
            "Leave out everything that the kernel does not need."
        )
    return ""


def refuse(submission: Submission, briefing: Briefing, reason: str) -> Verdict:
    """Reject a submission for its envelope (no code in it, or too much) without evaluating it."""
    return _unjudged(Status.REJECTED, submission, briefing, reason)


def unevaluated(submission: Submission, briefing: Briefing, reason: str) -> Verdict:
    """Report that the evaluator could not be reached; nobody has looked at the submission."""
    return _unjudged(Status.INFRASTRUCTURE_ERROR, submission, briefing, reason)


def _unjudged(status: Status, submission: Submission, briefing: Briefing, reason: str) -> Verdict:
    return Verdict(
        status=status,
        task_id=submission.task.id,
        evaluation_id=submission.evaluation_id,
        device=briefing.device.id,
        isolation=briefing.isolation,
        reason=reason,
        reference=briefing.reference,
        roofline=briefing.roofline,
    )
