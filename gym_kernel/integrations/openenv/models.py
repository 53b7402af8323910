"""What client and server of a kernel environment say to each other, as typed fields.

Everything is a declared field: OpenEnv drops ``metadata`` on its way to the client. JSON has no NaN, so a
number that is not known is ``null`` there and ``None`` here, where the environment's info has ``nan``.
"""

from __future__ import annotations

from typing import Any

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field, field_validator

__all__ = ["KernelAction", "KernelObservation", "KernelState"]


class KernelAction(Action):
    """One submission: the policy's reply, with the module in its last fenced block or as the whole text.

    Attributes:
        code: Any text. What cannot be judged gets an answer that says why, and no error.
    """

    code: str = Field(description="Reply that holds a Python module with class ModelNew")

    @field_validator("code", mode="before")
    @classmethod
    def _sendable(cls, value: Any) -> Any:
        # JSON can spell halves of surrogate pairs, which are no text that could be sent on.
        return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


class KernelObservation(Observation):
    """Prompt or feedback, and what is known about the submission.

    ``reward`` is ``None`` after a reset. Fields that describe a verdict are empty or ``None`` then.

    Attributes:
        text: The prompt after a reset, feedback after a step.
        task: Id of the task.
        status: Name of the outcome, for instance ``"compile_error"``; ``""`` after a reset.
        correct: Whether the submission was judged correct.
        cheat: Short name of the kind of cheat.
        truncated: The evaluator failed, which is not the policy's fault: drop the sample.
        correctness_reward: Part of the reward that is for being correct.
        speed_reward: Part of the reward that is for being fast.
        runtime_us: Median verified time of the submission, in microseconds.
        runtime_ci_us: Half-width of its 95 % confidence interval, in microseconds.
        reference_us: Time of the eager reference, in microseconds.
        speedup: Reference time over the submission's.
        t_min_us: Roofline floor of the task on the device, in microseconds.
        roofline_fraction: ``min(t_min / runtime, 1)``.
        contended: Whether another process computed on the device meanwhile.
        max_abs_error: Largest absolute error against the oracle.
        max_rel_error: Largest relative error against the oracle.
        compile_s: Seconds for import, construction and compilation.
        queue_s: Seconds of waiting for a worker and for the device.
        evaluate_s: Seconds from the judge's receipt to the verdict.
        device: Id of the device, for instance ``"cuda:0"``.
        isolation: Isolation tier of the worker.
        evaluation_id: Identifier of the evaluation, as in the record.
        turn: Submissions made in this episode.
        turns_left: Submissions that are left.
        episode_return: Discounted sum of the rewards so far.
    """

    text: str
    task: str
    status: str = ""
    correct: bool = False
    cheat: str = ""
    truncated: bool = False
    correctness_reward: float | None = None
    speed_reward: float | None = None
    runtime_us: float | None = None
    runtime_ci_us: float | None = None
    reference_us: float | None = None
    speedup: float | None = None
    t_min_us: float | None = None
    roofline_fraction: float | None = None
    contended: bool = False
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    compile_s: float | None = None
    queue_s: float | None = None
    evaluate_s: float | None = None
    device: str = ""
    isolation: str = ""
    evaluation_id: str = ""
    turn: int = 0
    turns_left: int = 0
    episode_return: float = 0.0


class KernelState(State):
    """Where a session's episode stands; ``episode_id`` is ``None`` before the first reset.

    Attributes:
        task: Id of the task.
        status: Outcome of the last submission.
        turns_left: Submissions that are left.
        episode_return: Discounted sum of the rewards so far.
        done: Whether the episode is over.
    """

    task: str = ""
    status: str = ""
    turns_left: int = 0
    episode_return: float = 0.0
    done: bool = False
