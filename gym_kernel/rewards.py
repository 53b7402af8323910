"""The reward of a submission and the return of an episode, as pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = ["CORRECT_REWARD", "SPEED_REWARD", "episode_return", "turn_reward"]

CORRECT_REWARD = 0.3
"""What any correct kernel earns, however slow."""

SPEED_REWARD = 2.7
"""What a kernel at the roofline floor earns on top."""


def turn_reward(correct: bool, t_min_us: float, runtime_us: float) -> float:
    """Reward of one submission: ``0.3 + 2.7 * min(t_min / t, 1)`` when correct, else 0.

    Args:
        correct: Whether the submission was judged correct. If not, both times are ignored and may be ``nan``.
        t_min_us: Roofline floor of the task on the device, in microseconds.
        runtime_us: Verified time of the submission, in microseconds.

    Returns:
        A finite number: 0 or one in (0.3, 3].

    Raises:
        ValueError: The submission is correct and a time is not a finite, positive number.

    Example:
        >>> turn_reward(True, t_min_us=50.0, runtime_us=49.0)
        3.0
        >>> round(turn_reward(True, t_min_us=50.0, runtime_us=100.0), 6)
        1.65
        >>> turn_reward(False, t_min_us=50.0, runtime_us=float("nan"))
        0.0
    """
    if not correct:
        return 0.0
    for name, value in (("t_min_us", t_min_us), ("runtime_us", runtime_us)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"A correct submission needs a finite, positive {name}, not {value!r}.")
    return CORRECT_REWARD + SPEED_REWARD * min(t_min_us / runtime_us, 1.0)


def episode_return(rewards: Iterable[float], discount: float = 0.4) -> float:
    """Discounted sum of the rewards of an episode's submissions: ``r1 + discount * r2 + ...``.

    Args:
        rewards: One reward for each submission, in order.
        discount: Weight of each submission relative to the one before it.

    Returns:
        The return; 0 for an episode without a submission.

    Example:
        >>> episode_return([0.5, 2.5])
        1.5
        >>> episode_return([1.0, 1.0, 1.0], discount=0.5)
        1.75
    """
    return float(sum(reward * discount**turn for turn, reward in enumerate(rewards)))
