"""Rows of prompts for ``GRPOTrainer``, and how a rollout finds the task in them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gym_kernel.errors import ConfigurationError
from gym_kernel.tasks import Task, load

if TYPE_CHECKING:
    import datasets

__all__ = ["Message", "prompt_dataset", "task_of", "with_observation"]

Message = dict[str, Any]

_TASK_LINE = re.compile(r"^Task: (?P<id>\S.*?)\s*$", re.MULTILINE)


def prompt_dataset(
    tasks: str | Task | Sequence[str | Task] = "pilot/train",
    *,
    system: str | None = None,
    repeats: int = 1,
    kernelbench: str | os.PathLike[str] | None = None,
) -> datasets.Dataset:
    """Make the ``train_dataset`` of a ``GRPOTrainer``: a row for each task.

    A row is short, ``Task: relu``; what the policy must know about the task on the device is added when an
    episode begins. The trainer needs at least as many rows as it has prompts in a generation batch
    (``generation_batch_size // num_generations``).

    Args:
        tasks: As for :class:`~gym_kernel.envs.kernel_env.KernelEnv`.
        system: A system message that precedes each prompt, or ``None`` for the chat template's own.
        repeats: How often the list of tasks is repeated.
        kernelbench: Path of a KernelBench checkout, for suites ``kernelbench/...``.

    Returns:
        A dataset with the columns ``prompt`` (chat messages) and ``task`` (an id).

    Raises:
        ConfigurationError: ``repeats`` is less than 1.
        TaskError: ``tasks`` names something that does not exist.

    Example:
        >>> prompt_dataset("relu")[0]
        {'prompt': [{'role': 'user', 'content': 'Task: relu'}], 'task': 'relu'}
    """
    import datasets

    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
        raise ConfigurationError(f"repeats must be a whole number, at least 1, not {repeats!r}.")
    ids = [task.id for task in load(tasks, kernelbench=kernelbench)] * repeats
    opening: list[Message] = [] if system is None else [{"role": "system", "content": system}]
    prompts = [[*opening, {"role": "user", "content": f"Task: {each}"}] for each in ids]
    return datasets.Dataset.from_dict({"prompt": prompts, "task": ids})


def task_of(prompt: Any) -> str:
    """The task that a prompt names, in a line ``Task: <id>`` of its last message.

    TRL hands a rollout function the prompts alone, without the other columns of their rows.

    Args:
        prompt: Chat messages.

    Raises:
        ConfigurationError: It is no list of messages, or names no task.
    """
    text = prompt[-1].get("content") if isinstance(prompt, list) and prompt else None
    found = _TASK_LINE.search(text) if isinstance(text, str) else None
    if found is None:
        raise ConfigurationError(
            "Each prompt must be a list of chat messages whose last one has a line 'Task: <id>', such as those "
            f"of gym_kernel.integrations.trl.prompt_dataset(). Found {prompt!r:.200}."
        )
    return found["id"]


def with_observation(prompt: Sequence[Message], observation: str) -> list[Message]:
    """The prompt with the environment's first observation after its last message, as TRL appends it."""
    last = prompt[-1]
    return [*prompt[:-1], {**last, "content": f"{last['content']}\n\n{observation}"}]
