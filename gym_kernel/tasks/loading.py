"""Turn what a user writes for ``tasks=`` into tasks."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping

from gym_kernel.errors import ConfigurationError, TaskError
from gym_kernel.tasks.kernelbench import is_kernelbench, kernelbench_tasks
from gym_kernel.tasks.suites import builtin_tasks, suite_names, suite_task_ids
from gym_kernel.tasks.task import Task
from gym_kernel.tasks.task_file import read_task_file
from gym_kernel.tasks.validation import shown, validate_task

__all__ = ["load"]


def load(
    spec: str | Task | Iterable[str | Task], kernelbench: str | os.PathLike[str] | None = None
) -> tuple[Task, ...]:
    """Load tasks by suite, by id, or as they are.

    Args:
        spec: A suite's name (``"pilot/train"``), a task's id (``"relu"``, or ``"rms_norm_fp16@wide"`` for another
            of its shapes), the path of a task file (``"my_task.py"``), a :class:`Task`, or a sequence that mixes these.
            KernelBench: a level (``"kernelbench/level1"``) or a problem (``"kernelbench/level2/17"``,
            ``"kernelbench/19_ReLU"``); ``+unsound`` at the end lets problems in that are known to be unsound.
        kernelbench: Path of a KernelBench checkout, or of a Parquet or JSONL file of its data set. Other suites do
            not need it.

    Returns:
        The tasks in the order they were asked for, each once.

    Raises:
        TaskError: A name is unknown, a task is unusable, two different tasks share an id, or nothing is left.
        ConfigurationError: ``kernelbench`` is no path.

    Example:
        >>> [task.id for task in load(["softmax", "pilot/heldout"])]
        ['softmax', 'log_softmax', 'mingpt_gelu']
    """
    if kernelbench is not None and not isinstance(kernelbench, (str, os.PathLike)):
        raise ConfigurationError(
            f"kernelbench={kernelbench!r} must be the path of a KernelBench checkout, or of a Parquet or JSONL file of "
            "its data set."
        )
    tasks: dict[str, Task] = {}
    for task in _expand(spec, kernelbench):
        if tasks.setdefault(task.id, task) != task:
            raise TaskError(f"Two different tasks have the id {task.id!r}. Give one of them another id.")
    if not tasks:
        raise TaskError(
            f"No task was named. Pass a suite ({_listed(suite_names())}), a task id such as 'relu', or Task objects."
        )
    return tuple(tasks.values())


def _expand(spec: object, kernelbench: str | os.PathLike[str] | None) -> Iterator[Task]:
    if isinstance(spec, Task):
        validate_task(spec)
        yield spec
    elif isinstance(spec, str):
        yield from _by_name(spec, kernelbench)
    elif isinstance(spec, Mapping):
        named = f" with the id {shown(spec['id'])}" if "id" in spec else ""
        raise TaskError(
            f"A task is given as a dict{named}, which is what a Task becomes when a gymnasium EnvSpec goes through "
            "JSON. Pass the Task itself to gymnasium.make, or name the task by its id or its file "
            "('path/to/task.py'), which JSON keeps."
        )
    elif isinstance(spec, Iterable):
        for item in spec:
            yield from _expand(item, kernelbench)
    else:
        raise TaskError(
            f"Tasks are named by a suite, an id, a Task or a sequence of these, not by {shown(spec)} "
            f"({type(spec).__name__})."
        )


def _by_name(name: str, kernelbench: str | os.PathLike[str] | None) -> Iterator[Task]:
    tasks = builtin_tasks()
    base, _, shape = name.partition("@")
    if name in tasks:
        yield tasks[name]
    elif shape and base in tasks:
        yield _at_shape(tasks[base], shape)
    elif name in suite_names():
        yield from (tasks[task_id] for task_id in suite_task_ids(name))
    elif name.endswith(".py"):
        yield _of_file(name)
    elif is_kernelbench(name):
        yield from kernelbench_tasks(name, kernelbench)
    elif not name.strip():
        raise TaskError(
            f"A task name is empty. Pass a suite ({_listed(suite_names())}) or a task id such as 'relu'."
        )
    else:
        raise TaskError(_unknown(name))


def _of_file(path: str) -> Task:
    task = read_task_file(path)
    try:
        validate_task(task)
    except TaskError as error:
        # What is wrong is told of the task, and to be mended in the file.
        raise TaskError(f"{path}: {error}") from error
    return task


def _at_shape(task: Task, shape: str) -> Task:
    try:
        return task.at(shape)
    except KeyError:
        names = _listed(each.name for each in task.shapes)
        has = f"it has {names}." if names else f"it has one size only; write {task.id!r}."
        raise TaskError(f"Task {task.id!r} has no shape {shape!r}; {has}") from None


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name.lower(), [*suite_names(), *builtin_tasks()], n=3, cutoff=0.5)
    said = f"There is no task or suite {name!r}."
    if os.path.isdir(name):
        return (
            f"{said} It is a folder: name the task files in it, such as {os.path.join(name, 'my_task.py')!r}."
        )
    if os.path.exists(name) or re.search(r"\.[A-Za-z]+$", name):
        return f"{said} A task of your own is named by its file, and a task file ends in .py."
    if close:
        meant = " or ".join(repr(match) for match in close)
        return f"{said} Did you mean {meant}? `gym-kernel tasks` lists the tasks with their suites."
    return (
        f"{said} The suites are {_listed(suite_names())}; `gym-kernel tasks` lists the task ids. A task of your own is "
        "named by its file, 'path/to/task.py'."
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
