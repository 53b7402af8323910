"""The reward of a submission as an OpenEnv rubric, so that its components can be looked at."""

from __future__ import annotations

from typing import Any

from openenv.core.rubrics import Rubric

from gym_kernel.rewards import CORRECT_REWARD, SPEED_REWARD

__all__ = ["Correctness", "Speed", "TurnRubric"]


class Correctness(Rubric):
    """1 for a submission that was judged correct, else 0."""

    def forward(self, action: Any, observation: Any) -> float:
        """Score an observation; the action has been judged already."""
        return 1.0 if observation.correct else 0.0


class Speed(Rubric):
    """``min(t_min / t, 1)`` of a correct submission, its share of the roofline; else 0."""

    def forward(self, action: Any, observation: Any) -> float:
        """Score an observation; the action has been judged already."""
        return float(observation.roofline_fraction or 0.0) if observation.correct else 0.0


class TurnRubric(Rubric):
    """``0.3 * correctness + 2.7 * speed``: :func:`gym_kernel.rewards.turn_reward` in components.

    ``named_rubrics()`` yields ``correctness`` and ``speed``, each with its ``last_score`` in [0, 1].

    Example:
        >>> from gym_kernel.integrations.openenv import KernelObservation
        >>> rubric = TurnRubric()
        >>> rubric(None, KernelObservation(text="", task="relu", correct=True, roofline_fraction=1.0))
        3.0
        >>> [(name, part.last_score) for name, part in rubric.named_rubrics()]
        [('correctness', 1.0), ('speed', 1.0)]
    """

    def __init__(self) -> None:
        super().__init__()
        self.correctness = Correctness()
        self.speed = Speed()

    def forward(self, action: Any, observation: Any) -> float:
        """Reward of one submission, as :func:`gym_kernel.rewards.turn_reward` has it."""
        correctness = self.correctness(action, observation)
        return CORRECT_REWARD * correctness + SPEED_REWARD * self.speed(action, observation)
