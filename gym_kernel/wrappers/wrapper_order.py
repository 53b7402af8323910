"""Which wrappers an environment has already, so that one that would be silently wrong inside another is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import Autoreset, TimeLimit

from gym_kernel.errors import ConfigurationError

__all__ = ["MASK_INSIDE_BUDGET", "check_no_autoreset", "check_no_time_limit", "layers"]

MASK_INSIDE_BUDGET = (
    "FeedbackMask goes round RepairBudget, not inside it, or its transcript lacks what RepairBudget tells "
    "the policy: FeedbackMask(RepairBudget(env), tokenizer)."
)


def layers(env: gym.Env[Any, Any]) -> Iterator[gym.Wrapper[Any, Any, Any, Any]]:
    """The wrappers of an environment, from the outermost inwards."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env


def check_no_autoreset(env: gym.Env[Any, Any], outer: str) -> None:
    """Refuse gymnasium's ``Autoreset`` inside: it takes an action after an end for a wish to reset, and drops it.

    Args:
        env: What is to be wrapped.
        outer: Name of the wrapper that goes round it.

    Raises:
        ConfigurationError: One of its wrappers is an ``Autoreset``.
    """
    if any(isinstance(layer, Autoreset) for layer in layers(env)):
        raise ConfigurationError(
            f"Autoreset goes round {outer}, not inside it, where it drops the submission after each end of a "
            f"KernelEnv's episode: Autoreset({outer}(env))."
        )


def check_no_time_limit(env: gym.Env[Any, Any], outer: str) -> None:
    """Refuse gymnasium's ``TimeLimit`` inside: it would cut short, as the evaluator's failure, what is granted outside.

    Args:
        env: What is to be wrapped.
        outer: Name of the wrapper that goes round it.

    Raises:
        ConfigurationError: One of its wrappers is a ``TimeLimit``.
    """
    if any(isinstance(layer, TimeLimit) for layer in layers(env)):
        raise ConfigurationError(
            f"This environment has a TimeLimit, which does not go inside {outer}. Leave it out (max_episode_steps "
            f"of gymnasium.make too): {outer}(env, turns=...) is what limits an episode."
        )
