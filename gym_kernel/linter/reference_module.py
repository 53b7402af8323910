"""Running a task's source, to get at what it defines."""

from __future__ import annotations

from typing import Any

from gym_kernel.tasks.task import Task, TaskScale

__all__ = ["run_reference_module"]


def run_reference_module(task: Task, scale: TaskScale) -> dict[str, Any]:
    """Run a task's source and give its sizes the values for a scale.

    Args:
        task: A task whose reference runs.
        scale: Which sizes.

    Returns:
        The names that the module defines.
    """
    namespace: dict[str, Any] = {"__name__": f"reference_{task.id}"}
    exec(compile(task.source, f"<reference of {task.id}>", "exec"), namespace)
    namespace.update(task.sizes_at(scale))
    return namespace
