"""Tasks at fewer rows than they come with, where a kernel's time in Triton's interpreter is not what is tested."""

from __future__ import annotations

from dataclasses import replace

from gym_kernel.tasks import Task, TaskScale, load

__all__ = ["with_rows"]


def with_rows(task_id: str, rows: int) -> Task:
    """A task of the pilot whose small shape has so many rows."""
    (task,) = load(task_id)
    small = {**task.sizes_at(TaskScale.SMALL), "batch_size": rows}
    return replace(task, sizes={**task.sizes, TaskScale.SMALL: small})
