"""Suites: names for ordered groups of tasks."""

from __future__ import annotations

from gym_kernel.errors import TaskError
from gym_kernel.tasks.core import FAMILIES, core_tasks
from gym_kernel.tasks.pilot import pilot_tasks
from gym_kernel.tasks.task import Task

__all__ = ["builtin_tasks", "suite_names", "suite_task_ids"]

_LEVELS = ("core/level1", "core/level2", "core/level3")
_SUITES = (
    "pilot",
    "pilot/train",
    "pilot/reserved",
    "pilot/heldout",
    "core",
    "core/train",
    "core/reserved",
    "core/heldout",
    *(f"core/{split}/{family}" for family, split in FAMILIES.items()),
    *_LEVELS,
)


def suite_names() -> tuple[str, ...]:
    """Names of the suites that :func:`gym_kernel.tasks.load` knows, in order.

    Example:
        >>> suite_names()[:5]
        ('pilot', 'pilot/train', 'pilot/reserved', 'pilot/heldout', 'core')
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
    return {task.id: task for task in (*pilot_tasks(), *core_tasks())}


def _belongs(task: Task, suite: str) -> bool:
    if suite in _LEVELS:
        return task.suite.startswith("core/") and suite == f"core/level{task.level}"
    return task.suite == suite or task.suite.startswith(f"{suite}/")
