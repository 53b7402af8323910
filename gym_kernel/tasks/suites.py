"""Suites: names for ordered groups of tasks."""

from __future__ import annotations

from gym_kernel.errors import TaskError
from gym_kernel.tasks.pilot import pilot_tasks
from gym_kernel.tasks.task import Task

__all__ = ["builtin_tasks", "suite_names", "suite_task_ids"]

_SUITES = ("pilot", "pilot/train", "pilot/reserved", "pilot/heldout")


def suite_names() -> tuple[str, ...]:
    """Names of the suites that :func:`gym_kernel.tasks.load` knows, in order.

    Example:
        >>> suite_names()
        ('pilot', 'pilot/train', 'pilot/reserved', 'pilot/heldout')
    """
    return _SUITES


def suite_task_ids(suite: str) -> tuple[str, ...]:
    """Ids of a suite's tasks, in order; those of its sub-suites belong to it.

    Args:
        suite: One of :func:`suite_names`.

    Raises:
        TaskError: There is no suite of that name.

    Example:
        >>> suite_task_ids("pilot/heldout")
        ('softmax', 'log_softmax', 'mingpt_gelu')
    """
    if suite not in _SUITES:
        raise TaskError(f"There is no suite {suite!r}. Use one of: {', '.join(_SUITES)}.")
    return tuple(task.id for task in builtin_tasks().values() if _belongs(task, suite))


def builtin_tasks() -> dict[str, Task]:
    """Every task that comes with the package, by id, in order."""
    return {task.id: task for task in pilot_tasks()}


def _belongs(task: Task, suite: str) -> bool:
    return task.suite == suite or task.suite.startswith(f"{suite}/")
