"""What became of one rollout: its submissions' outcomes and its return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gym_kernel.evaluator.status import Blame, Status

__all__ = ["Episode", "Outcome"]

_NOT_COMPILED = (Status.REJECTED, Status.COMPILE_ERROR)


@dataclass(frozen=True)
class Outcome:
    """One submission.

    Attributes:
        status: How its evaluation ended.
        reward: Its own reward, from 0 to 3.
        speedup: Time of the eager reference over its own; ``nan`` unless correct.
    """

    status: Status
    reward: float
    speedup: float

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Outcome:
        """Read it from the info of a step."""
        return cls(Status(str(info["status"])), float(info["reward"]), float(info["speedup"]))

    @property
    def correct(self) -> bool:
        """Whether it earned a reward."""
        return self.status is Status.CORRECT

    @property
    def compiled(self) -> bool:
        """Whether it got past the static checks and the compilers."""
        return self.status not in _NOT_COMPILED

    @property
    def lost(self) -> bool:
        """Whether the evaluator failed, and not the submission."""
        return self.status.blame is Blame.INFRASTRUCTURE


@dataclass(frozen=True)
class Episode:
    """One rollout.

    Attributes:
        task: Id of the task.
        outcomes: Its submissions, in order; empty where the policy never submitted.
        episode_return: Discounted sum of their rewards.
    """

    task: str
    outcomes: tuple[Outcome, ...] = ()
    episode_return: float = 0.0

    def after(self, info: Mapping[str, Any]) -> Episode:
        """This episode with one more submission, read from the info of its step."""
        return Episode(self.task, (*self.outcomes, Outcome.of(info)), float(info["episode_return"]))

    @property
    def lost(self) -> bool:
        """Whether the evaluator failed in it, so that a learner should drop it."""
        return any(outcome.lost for outcome in self.outcomes)

    @property
    def reward(self) -> float | None:
        """What a learner gets: the return, or ``None`` for an episode that was lost."""
        return None if self.lost else self.episode_return
