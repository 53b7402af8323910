"""Sizes of a task that a device has memory for: the official ones, or fewer on a smaller card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gym_kernel.evaluator.reference_source import execute_reference
from gym_kernel.linter.official_count import count_official
from gym_kernel.tasks.task import Task, TaskScale

__all__ = ["at_fitting_sizes"]

_GIB = 1 << 30
# The judge's reference output comes on top of what the linter counts; contexts and other submissions take the rest.
_USABLE_SHARE = 0.7 / 1.25


def at_fitting_sizes(task: Task, memory_bytes: int) -> Task:
    """The task with its official sizes made to fit a GPU.

    Where they do not fit, the size whose half saves most memory is halved, of equal ones the first, until they do.
    Where a reference cannot be counted without running it, or no size can be halved, they are left as they are.

    Args:
        task: A task at one shape.
        memory_bytes: All memory of the GPU.

    Returns:
        The same task where it fits.
    """
    usable_gib = _USABLE_SHARE * memory_bytes / _GIB
    if task.memory_gib <= usable_gib:
        return task
    needed_gib = _needed_gib(task)
    while needed_gib is not None and needed_gib > usable_gib:
        smaller = [(need, other) for other in _halved(task) if (need := _needed_gib(other)) is not None]
        least_gib, best = min(smaller, key=lambda pair: pair[0], default=(needed_gib, task))
        if least_gib >= needed_gib:
            return task
        needed_gib, task = least_gib, best
    return task


def _halved(task: Task) -> Iterator[Task]:
    """The task with one of its sizes halved, for each."""
    official = task.sizes_at(TaskScale.OFFICIAL)
    defined = execute_reference(task, task.source, TaskScale.OFFICIAL)
    for name in {**task.sizes_at(TaskScale.SMALL), **official}:
        value = defined.get(name)
        if isinstance(value, int) and value >= 2:
            sizes = {**task.sizes, TaskScale.OFFICIAL: {**official, name: value // 2}}
            yield replace(task, sizes=sizes)


def _needed_gib(task: Task) -> float | None:
    try:
        return count_official(task).memory_gib
    except Exception:
        # Whatever a reference may raise on fake tensors, or at a size that it was not made for.
        return None
