"""Prompts of tasks as rows, for trainers that want a dataset instead of an environment."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gym_kernel.tasks.loading import load
from gym_kernel.tasks.task import Task

if TYPE_CHECKING:
    import datasets

    from gym_kernel.envs.kernel_env import KernelEnv

__all__ = ["PromptRow", "prompt_dataset", "prompt_rows"]


@dataclass(frozen=True)
class PromptRow:
    """One task as a policy meets it.

    Attributes:
        id: Id of the task, for ``reset(options={"task": id})``.
        suite: Suite that it belongs to.
        family: Kind of operation; empty where nobody has said.
        level: Difficulty, 1 to 3.
        prompt: What the environment shows after ``reset``.
        reference: Source of the reference module.
        device: Device that the prompt speaks of: its sizes, ceilings and times.
    """

    id: str
    suite: str
    family: str
    level: int
    prompt: str
    reference: str
    device: str


def prompt_rows(
    tasks: str | Task | Sequence[str | Task] = "core/train",
    device: str = "auto",
    kernelbench: str | os.PathLike[str] | None = None,
) -> Iterator[PromptRow]:
    """Word the prompts of tasks, one after another.

    A prompt states the device's ceilings and the reference's time on it, so each task is run once there.

    Args:
        tasks: As for :class:`~gym_kernel.envs.kernel_env.KernelEnv`.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``: the one that will evaluate.
        kernelbench: Path of a KernelBench checkout, for suites ``kernelbench/...``.

    Returns:
        An iterator over one row for each task, in order; the evaluator is let go at its end.

    Raises:
        ConfigurationError: The device's name is not known.
        TaskError: ``tasks`` names something that does not exist.

    Example:
        >>> [(row.id, row.level) for row in prompt_rows("pilot/heldout", device="cpu")]
        [('softmax', 1), ('log_softmax', 1), ('mingpt_gelu', 1)]
    """
    # Here and not above: tasks are loaded where there is no environment.
    from gym_kernel.envs.kernel_env import KernelEnv

    found = load(tasks, kernelbench=kernelbench)
    return _rows(KernelEnv(tasks=found, device=device), found)


def prompt_dataset(
    tasks: str | Task | Sequence[str | Task] = "core/train",
    device: str = "auto",
    kernelbench: str | os.PathLike[str] | None = None,
) -> datasets.Dataset:
    """The same as a Hugging Face dataset, with the fields of :class:`PromptRow` as columns.

    Args:
        tasks: As for :func:`prompt_rows`.
        device: As for :func:`prompt_rows`.
        kernelbench: As for :func:`prompt_rows`.

    Raises:
        ImportError: The library ``datasets`` is not installed.
        ConfigurationError: The device's name is not known.
        TaskError: ``tasks`` names something that does not exist.
    """
    try:
        import datasets
    except ImportError as error:
        raise ImportError(
            "prompt_dataset needs the library datasets, which is not installed: pip install 'gym-kernel[trl]'. "
            "prompt_rows() does without it."
        ) from error
    rows = prompt_rows(tasks, device, kernelbench)
    return datasets.Dataset.from_list([dataclasses.asdict(row) for row in rows])


def _rows(env: KernelEnv, tasks: tuple[Task, ...]) -> Iterator[PromptRow]:
    with env:
        for task in tasks:
            prompt, info = env.reset(options={"task": task.id})
            yield PromptRow(
                task.id, task.suite, task.family, task.level, prompt, task.source, str(info["device"])
            )
