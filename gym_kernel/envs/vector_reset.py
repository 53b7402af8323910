"""What a reset of a vector environment asks of each of its environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from gym_kernel.errors import ConfigurationError

__all__ = ["ResetPlan", "first_seed", "plan_reset"]

_KNOWN = {"task", "tasks", "reset_mask"}


@dataclass(frozen=True)
class ResetPlan:
    """Seeds and options by environment.

    Attributes:
        positions: Environments to reset.
        seeds: One for every environment, ``None`` where its random state goes on.
        tasks: One for every environment, ``None`` where it draws.
    """

    positions: tuple[int, ...]
    seeds: tuple[int | None, ...]
    tasks: tuple[str | None, ...]

    def of(self, position: int) -> tuple[int | None, dict[str, Any] | None]:
        """Arguments ``seed`` and ``options`` of one environment's ``reset``."""
        task = self.tasks[position]
        return self.seeds[position], None if task is None else {"task": task}


def first_seed(seed: Any) -> int | None:
    """A whole number that stands for a reset's ``seed``, to seed what a vector environment draws itself."""
    if isinstance(seed, (list, tuple, np.ndarray)):
        seed = next((one for one in seed if one is not None), None)
    return int(seed) if _is_whole(seed) else None


def plan_reset(
    num_envs: int,
    group_size: int,
    seed: int | Sequence[int | None] | None,
    options: dict[str, Any] | None,
    random: np.random.Generator,
) -> ResetPlan:
    """Read the arguments of a vector environment's ``reset``.

    Args:
        num_envs: How many environments.
        group_size: How many of them, next to each other, share their tasks.
        seed: One from which each group's follows, one for each group or environment, or ``None``.
        options: ``task``, ``tasks`` and ``reset_mask``, or ``None``.
        random: Draws the groups' seeds where none is given.

    Raises:
        ConfigurationError: An option is unknown, or a length or type is wrong.
    """
    if options is not None and not isinstance(options, dict):
        raise ConfigurationError(f"options must be a dict such as {{'tasks': [...]}}, not {options!r}.")
    options = dict(options or {})
    unknown = sorted(str(key) for key in options if key not in _KNOWN)
    if unknown:
        raise ConfigurationError(
            f"reset() does not know the option {', '.join(map(repr, unknown))}. Pass 'tasks' (a list of ids), "
            "'task' (one id) or 'reset_mask' (a bool array)."
        )
    if "task" in options and "tasks" in options:
        raise ConfigurationError("Pass either 'task', one id for all, or 'tasks', a list of ids, not both.")
    positions = _positions(options.get("reset_mask"), num_envs)
    tasks = _tasks(options, num_envs, group_size)
    seeds = _seeds(seed, num_envs, group_size)
    if group_size > 1:
        cut = not _are_whole_groups(positions, group_size)
        if cut and tasks[0] is None:
            raise ConfigurationError(
                "options['reset_mask'] cuts a group in two, and its members would get different tasks. Reset whole "
                "groups, or name the tasks: options={'reset_mask': mask, 'tasks': [...]}."
            )
        if seed is None and not cut:
            # Whatever became of them before, the members of a group draw the same tasks from here on.
            drawn = random.integers(1 << 31, size=num_envs // group_size).tolist()
            seeds = tuple(drawn[position // group_size] for position in range(num_envs))
    return ResetPlan(positions, seeds, tasks)


def _positions(mask: Any, num_envs: int) -> tuple[int, ...]:
    if mask is None:
        return tuple(range(num_envs))
    if not (isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (num_envs,)):
        raise ConfigurationError(
            f"options['reset_mask'] must be a numpy bool array of shape ({num_envs},), such as "
            "terminations | truncations."
        )
    if not mask.any():
        raise ConfigurationError("options['reset_mask'] names no environment; do not call reset() then.")
    return tuple(np.flatnonzero(mask).tolist())


def _tasks(options: dict[str, Any], num_envs: int, group_size: int) -> tuple[str | None, ...]:
    if "task" in options:
        return (options["task"],) * num_envs
    if options.get("tasks") is None:
        return (None,) * num_envs
    named = options["tasks"]
    if isinstance(named, str) or not isinstance(named, (list, tuple)):
        raise ConfigurationError(f"options['tasks'] must be a list of task ids, not {named!r}.")
    each = _each(named, num_envs, group_size, "options['tasks']")
    if any(each[position] != each[position - position % group_size] for position in range(num_envs)):
        raise ConfigurationError(
            f"options['tasks'] gives members of a group different tasks; each {group_size} neighbours share one."
        )
    return tuple(each)


def _seeds(seed: int | Sequence[int | None] | None, num_envs: int, group_size: int) -> tuple[int | None, ...]:
    if seed is None:
        return (None,) * num_envs
    if _is_whole(seed):
        return tuple(int(seed) + position // group_size for position in range(num_envs))
    if isinstance(seed, (list, tuple, np.ndarray)):
        each = _each(seed, num_envs, group_size, "seed")
        if all(one is None or _is_whole(one) for one in each):
            return tuple(None if one is None else int(one) for one in each)
    raise ConfigurationError(f"seed must be a whole number or a list of them, not {seed!r}.")


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _each(values: Sequence[Any], num_envs: int, group_size: int, what: str) -> list[Any]:
    """One value for each environment, from as many or from one for each group."""
    if len(values) == num_envs:
        return list(values)
    if len(values) * group_size == num_envs:
        return [value for value in values for _ in range(group_size)]
    wanted = (
        f"{num_envs}" if group_size == 1 else f"{num_envs} or, one for each group, {num_envs // group_size}"
    )
    raise ConfigurationError(f"{what} has {len(values)} entries; {wanted} are needed.")


def _are_whole_groups(positions: tuple[int, ...], group_size: int) -> bool:
    return len({position // group_size for position in positions}) * group_size == len(positions)
