"""Reward functions for ``GRPOTrainer(reward_funcs=...)``, which log what became of the episodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gym_kernel.errors import ConfigurationError
from gym_kernel.integrations.trl.episode import Episode

if TYPE_CHECKING:
    from gym_kernel.integrations.trl.environment import KernelTool

__all__ = ["episode_metrics", "kernel_return", "log_outcomes"]

LogMetric = Callable[[str, float], None]


def kernel_return(
    episode: Sequence[Episode] | None = None, log_metric: LogMetric | None = None, **_: Any
) -> list[float | None]:
    """Reward of rollouts made by :func:`~gym_kernel.integrations.trl.rollout_func`: the episodes' returns.

    Args:
        episode: What the rollout function returned under this name, one for each completion.
        log_metric: TRL's logger; see :func:`episode_metrics` for what is logged.

    Returns:
        One return for each completion; ``None``, which TRL leaves out, where the evaluator failed.

    Raises:
        ConfigurationError: The trainer has another rollout function.
    """
    if episode is None:
        raise ConfigurationError(
            "kernel_return reads the episodes of gym_kernel's rollout function: pass GRPOTrainer the argument "
            "rollout_func=gym_kernel.integrations.trl.rollout_func(...)."
        )
    _log(episode, log_metric)
    return [each.reward for each in episode]


def log_outcomes(
    environments: Sequence[KernelTool] | None = None, log_metric: LogMetric | None = None, **_: Any
) -> list[None]:
    """Log what became of episodes of :func:`~gym_kernel.integrations.trl.environment_factory`; rewards nothing.

    The environments own the reward. Add ``reward_funcs=[log_outcomes]`` to see rates beside it.

    Args:
        environments: The environments of the batch, given by TRL.
        log_metric: TRL's logger; see :func:`episode_metrics` for what is logged.

    Returns:
        ``None``, no reward, for each completion.

    Raises:
        ConfigurationError: The trainer has no environments.
    """
    if environments is None:
        raise ConfigurationError(
            "log_outcomes reads TRL's environments: pass GRPOTrainer the argument "
            "environment_factory=gym_kernel.integrations.trl.environment_factory(...)."
        )
    _log([environment.episode for environment in environments], log_metric)
    return [None] * len(environments)


def episode_metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    """Rates over a batch of episodes; submissions that the evaluator lost are left out.

    Args:
        episodes: The batch.

    Returns:
        ``kernel/submissions`` an episode; of the submissions the ``kernel/correct_rate`` and
        ``kernel/compile_rate``; ``kernel/solved_rate``, episodes with a correct one; ``kernel/lost_rate``,
        episodes in which the evaluator failed; ``kernel/speedup``, mean over eager PyTorch of those correct. A
        rate of nothing is left out.
    """
    judged = [outcome for each in episodes for outcome in each.outcomes if not outcome.lost]
    kept = [each for each in episodes if not each.lost]
    speedups = [outcome.speedup for outcome in judged if math.isfinite(outcome.speedup)]
    values = {
        "kernel/submissions": [float(len(each.outcomes)) for each in episodes],
        "kernel/lost_rate": [float(each.lost) for each in episodes],
        "kernel/solved_rate": [float(any(o.correct for o in each.outcomes)) for each in kept],
        "kernel/correct_rate": [float(outcome.correct) for outcome in judged],
        "kernel/compile_rate": [float(outcome.compiled) for outcome in judged],
        "kernel/speedup": speedups,
    }
    return {name: sum(numbers) / len(numbers) for name, numbers in values.items() if numbers}


def _log(episodes: Sequence[Episode], log_metric: LogMetric | None) -> None:
    if log_metric is not None:
        for name, value in episode_metrics(episodes).items():
            log_metric(name, value)
