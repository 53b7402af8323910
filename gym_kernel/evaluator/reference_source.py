"""A reference's module, run: the names that it defines, and the domains of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gym_kernel.errors import TaskError
from gym_kernel.tasks.task import Domain, Task, TaskScale

__all__ = ["TASKS_OWN", "domains_of", "execute_reference"]

TASKS_OWN = (Exception, SystemExit, KeyboardInterrupt)
"""What a task's code may raise: ``sys.exit()`` in it must not end the thread that was to answer."""


def execute_reference(task: Task, source: str, scale: TaskScale) -> dict[str, Any]:
    """Run a reference's module and give its sizes the values for a scale.

    Args:
        task: The task.
        source: Its reference, or an accepted alternative to it.
        scale: Which sizes.

    Returns:
        The names that the module defines.

    Raises:
        TaskError: It does not run, or lacks what it must define.
    """
    namespace: dict[str, Any] = {"__name__": f"reference_{task.id}"}
    try:
        exec(compile(source, f"<reference of {task.id}>", "exec"), namespace)
    except TASKS_OWN as error:
        raise TaskError(
            f"The reference module of task {task.id!r} does not run: {type(error).__name__}: {error}"
        ) from error
    for name in ("Model", "get_inputs", "get_init_inputs"):
        if name not in namespace:
            raise TaskError(f"The reference module of task {task.id!r} must define {name}.")
    namespace.update(task.sizes_at(scale))
    return namespace


def domains_of(task: Task, tensors: Sequence[torch.Tensor]) -> tuple[Domain, ...]:
    """The domain of each tensor of ``get_inputs``; anything for floating-point ones where the task says nothing.

    Raises:
        TaskError: The task declares another number of domains.
    """
    if not task.domains:
        return tuple(Domain(fixed=not tensor.is_floating_point()) for tensor in tensors)
    if len(task.domains) != len(tensors):
        raise TaskError(
            f"Task {task.id!r} declares {len(task.domains)} domain{'s' * (len(task.domains) != 1)}, but get_inputs "
            f"returns {len(tensors)} tensor{'s' * (len(tensors) != 1)}; declare one domain for each."
        )
    return task.domains
