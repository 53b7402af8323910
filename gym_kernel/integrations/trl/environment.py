"""An episode as TRL's ``environment_factory`` wants it: a plain class with one tool, ``submit``."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from gym_kernel.envs.kernel_env import KernelEnv
from gym_kernel.errors import ConfigurationError
from gym_kernel.integrations.trl.episode import Episode
from gym_kernel.wrappers.repair_budget import RepairBudget

__all__ = ["KernelTool", "environment_factory"]

_HOW_TO_SUBMIT = (
    "Submit with the tool `submit`: its argument `code` is the whole module, as text. Only what is submitted so "
    "is judged."
)
_NOTHING_LEFT = (
    "No submission is left: the episode is over and this code was not judged. Do not submit again."
)


class KernelTool:
    """One episode at a time, driven by TRL: ``reset``, then calls of the tool ``submit``, then ``get_reward``.

    TRL takes each public method but ``reset`` and ``get_reward`` for a tool, hence the one.

    Args:
        tasks: As for :class:`~gym_kernel.envs.kernel_env.KernelEnv`.
        device: As for ``KernelEnv``.
        turns: Submissions an episode.
        discount: Weight of each submission's reward relative to the one before it.
        **env_kwargs: Everything else that ``KernelEnv`` takes.

    Raises:
        ConfigurationError: An argument is out of its domain.
        TaskError: ``tasks`` names something that does not exist.
    """

    def __init__(
        self,
        tasks: Any = "pilot",
        device: str = "auto",
        turns: int = 2,
        discount: float = 0.4,
        **env_kwargs: Any,
    ) -> None:
        self._env = RepairBudget(KernelEnv(tasks=tasks, device=device, **env_kwargs), turns, discount)
        self._episode = Episode("")
        self._over = True
        # TRL never closes its environments.
        weakref.finalize(self, self._env.close)

    @property
    def episode(self) -> Episode:
        """What became of this episode so far."""
        return self._episode

    def reset(self, task: str | None = None, **_: Any) -> str:
        """Begin an episode of a task.

        Args:
            task: The task's id, from the column of that name.

        Returns:
            What TRL appends to the last message of the row's prompt.

        Raises:
            ConfigurationError: The dataset has no column ``task``.
            TaskError: The task is none of this environment's.
            EvaluatorError: The evaluator could not be started.
        """
        if task is None:
            # Drawing one here would give the members of a group different tasks, without a word.
            raise ConfigurationError(
                "The training rows need a column 'task' that names a task; "
                "gym_kernel.integrations.trl.prompt_dataset() makes such rows."
            )
        prompt, _info = self._env.reset(options={"task": task})
        self._episode, self._over = Episode(task), False
        return f"\n\n{prompt}\n\n{_HOW_TO_SUBMIT}"

    def submit(self, code: str) -> str:
        """Submit a kernel for the task and get feedback: a verdict, its reward, and what to do next.

        Args:
            code: The whole Python module that defines `class ModelNew(torch.nn.Module)`, as plain text.

        Returns:
            The verdict and what it was based on, and how many submissions are left.
        """
        if self._over:
            return _NOTHING_LEFT
        feedback, _reward, terminated, truncated, info = self._env.step(code)
        self._episode = self._episode.after(info)
        self._over = terminated or truncated
        return feedback

    def get_reward(self) -> float | None:
        """The return of the episode; 0 without a submission, ``None`` where the evaluator failed."""
        return self._episode.reward


def environment_factory(
    tasks: Any = "pilot",
    device: str = "auto",
    turns: int = 2,
    discount: float = 0.4,
    **env_kwargs: Any,
) -> Callable[[], KernelTool]:
    """Make what ``GRPOTrainer(environment_factory=...)`` takes. The reward is the environment's own.

    Set ``GRPOConfig(max_tool_calling_iterations=turns)``: TRL samples once more after each tool call, and this
    keeps it from going on after the last. ``max_completion_length`` counts all turns of an episode with their
    feedback; ``generation_kwargs={"max_new_tokens": n}`` bounds a turn. TRL calls the tools of a batch one after
    another; :func:`~gym_kernel.integrations.trl.rollout_func` judges them at once.

    Args:
        tasks: As for :class:`~gym_kernel.envs.kernel_env.KernelEnv`; the rows' tasks must be among them.
        device: As for ``KernelEnv``. Give evaluation a GPU that the trainer does not use.
        turns: Submissions an episode.
        discount: Weight of each submission's reward relative to the one before it.
        **env_kwargs: Everything else that ``KernelEnv`` takes.

    Returns:
        A callable without arguments that makes a :class:`KernelTool`.

    Raises:
        ConfigurationError: An argument is out of its domain.
        TaskError: ``tasks`` names something that does not exist.

    Example:
        >>> make = environment_factory(tasks="pilot/train", device="cpu")
        >>> make().submit("x = 1")
        'No submission is left: the episode is over and this code was not judged. Do not submit again.'
    """
    make = functools.partial(
        KernelTool, tasks=tasks, device=device, turns=turns, discount=discount, **env_kwargs
    )
    make()  # A wrong argument is told here, not when the trainer is built. This starts nothing.
    return make
