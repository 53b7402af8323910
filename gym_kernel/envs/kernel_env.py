"""``KernelEnv``: text in, text out, one submission an episode."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium.error import ResetNeeded

from gym_kernel.envs.counts import check_count
from gym_kernel.envs.feedback import feedback
from gym_kernel.envs.info import reset_info, step_info
from gym_kernel.envs.prompt import task_prompt
from gym_kernel.envs.refusal import objection, refuse, unevaluated
from gym_kernel.envs.text_space import KernelText, clean_text
from gym_kernel.envs.transcript import Transcript
from gym_kernel.errors import ConfigurationError, GymKernelError, TaskError
from gym_kernel.evaluator.briefing import Briefing
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.status import Blame
from gym_kernel.evaluator.submission import Submission, extract_code
from gym_kernel.evaluator.verdict import Verdict
from gym_kernel.rewards import turn_reward
from gym_kernel.tasks import Task, load

__all__ = ["KernelEnv"]

_NAN = float("nan")
_LEAST_OBSERVATION_CHARS = 1_024
# Accepted code must fit into one frame to the evaluator, whatever its characters.
_MOST_CODE_CHARS = 1 << 20


@dataclass
class _Episode:
    """What lasts from one reset to the next."""

    task: Task
    briefing: Briefing
    transcript: Transcript
    open: bool = True
    lost: bool = False


class KernelEnv(gym.Env[str, str]):
    """Write a faster GPU kernel for a PyTorch module; the reward is measured, not believed.

    ## Observation

    Text of :class:`~gym_kernel.envs.text_space.KernelText`: after ``reset`` the task's prompt (contract,
    reference source, sizes, device, roofline, rules), after ``step`` feedback on the submission.

    ## Action

    A reply that holds a Python module with ``class ModelNew``: the last fenced block counts, or the whole
    text where there is none. ``step`` accepts every ``str``, in the action space or not, and raises for none.

    ## Reward

    0 for a submission that is not correct, else ``0.3 + 2.7 * min(t_min / t, 1)``, where ``t_min`` is the
    hardware's roofline floor (see :func:`gym_kernel.rewards.turn_reward`).

    ## Episode

    One submission: each ``step`` terminates. :class:`gym_kernel.wrappers.RepairBudget` grants more. If the
    evaluator itself fails, ``truncated`` is true instead and the reward is 0, so that a learner can drop the
    sample.

    ## Info

    The flat dictionary :class:`~gym_kernel.envs.info.KernelInfo`.

    ## Reset

    The seed decides which task is drawn and nothing else. ``options={"task": id}`` names the task instead.

    Nothing is started before the first ``reset``. Environments with the same configuration share one
    evaluator host in a process. A copy, or an unpickled environment, opens the evaluator when it needs it.

    Args:
        tasks: A suite, a task id, a :class:`~gym_kernel.tasks.Task`, or a sequence of these.
        device: ``"auto"`` (a GPU where there is one, else the CPU), ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        kernelbench: Path of a KernelBench checkout, for suites ``kernelbench/...``.
        isolation: Tier that workers must run under, or ``"auto"`` for the best that this machine has.
        timeout_s: Seconds that a submission may spend on loading, compiling and running; queues do not count.
        record_dir: Folder for one line of JSON per evaluation; ``None`` keeps no record.
        evaluation_seed: Fixes the judge's hidden seeds, for a replay; ``None`` draws them anew each time.
        max_code_chars: Longest code accepted, in characters, at most 1,048,576.
        max_observation_chars: Longest observation, in characters, at least 1,024; longer text is cut in the
            middle.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        ConfigurationError: An argument is out of its domain.
        TaskError: ``tasks`` names something that does not exist.

    Example:
        >>> env = KernelEnv(tasks="pilot/heldout", device="cpu")
        >>> env.task_ids
        ('softmax', 'log_softmax', 'mingpt_gelu')
        >>> env.close()
    """

    # Gymnasium declares it on the instance, so it cannot be a ClassVar here.
    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        tasks: str | Task | Sequence[str | Task] = "pilot",
        device: str = "auto",
        kernelbench: str | os.PathLike[str] | None = None,
        isolation: str = "auto",
        timeout_s: float = 300.0,
        record_dir: str | os.PathLike[str] | None = None,
        evaluation_seed: int | None = None,
        max_code_chars: int = 65_536,
        max_observation_chars: int = 16_384,
        render_mode: str | None = None,
    ) -> None:
        check_count("max_code_chars", max_code_chars, 1, _MOST_CODE_CHARS)
        check_count("max_observation_chars", max_observation_chars, _LEAST_OBSERVATION_CHARS)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigurationError(f"render_mode must be 'ansi' or None, not {render_mode!r}.")
        self._tasks = {task.id: task for task in load(tasks, kernelbench=kernelbench)}
        self._config = EvaluatorConfig(
            device=device,
            isolation=isolation,
            timeout_s=timeout_s,
            record_dir=record_dir,  # type: ignore[arg-type]
            evaluation_seed=evaluation_seed,
        )
        self._max_code_chars = max_code_chars
        self._max_observation_chars = max_observation_chars
        self.action_space = KernelText(max_code_chars)
        self.observation_space = KernelText(max_observation_chars)
        self.render_mode = render_mode
        self._episode: _Episode | None = None
        self._evaluator: Evaluator | None = None
        self._closer: weakref.finalize[..., KernelEnv] | None = None

    @property
    def task_ids(self) -> tuple[str, ...]:
        """Ids of the tasks that ``reset`` draws from."""
        return tuple(self._tasks)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that ``reset`` draws from."""
        return tuple(self._tasks.values())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode: draw a task and word its prompt. The first call starts the evaluator.

        Args:
            seed: Seeds the draw of this and later tasks.
            options: ``{"task": id}`` names the task instead of drawing it.

        Returns:
            The prompt, and an info without a verdict.

        Raises:
            ConfigurationError: ``options`` holds an unknown key.
            TaskError: The task is none of this environment's, or its reference does not run.
            DeviceUnavailable: The device is not on this machine.
            IsolationUnavailable: The isolation tier cannot be had on this machine.
            EvaluatorError: The evaluator could not be started.
        """
        super().reset(seed=seed)
        self._episode = None
        task = self._choose(options or {})
        briefing = self._open_evaluator().brief(task)
        prompt = clean_text(task_prompt(task, briefing), self._max_observation_chars)
        self._episode = _Episode(task, briefing, Transcript(prompt))
        return prompt, dict(reset_info(task, briefing))

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Judge one submission.

        Args:
            action: The policy's reply. No ``str`` makes this raise, and each gets an answer.

        Returns:
            Feedback, reward, terminated, truncated and info.

        Raises:
            ConfigurationError: ``action`` is not a ``str``.
            ResetNeeded: The episode is over, or none has begun.
        """
        if not isinstance(action, str):
            raise ConfigurationError(
                f"An action is a str, the policy's reply, not {type(action).__name__}: decode tokens first. "
                "A vector environment takes a sequence of one str for each environment."
            )
        episode = self._episode
        if episode is None or not episode.open:
            raise ResetNeeded(
                "There is no open episode: call reset() before step(). The bare environment's episode ends after one "
                "submission, that of gym_kernel.wrappers.RepairBudget when its turns are spent."
            )
        code = extract_code(action)
        verdict = self._judge(episode, action, code)
        reward = _reward(verdict)
        lost = verdict.blame is Blame.INFRASTRUCTURE
        observation = clean_text(feedback(verdict, reward), self._max_observation_chars)
        episode.open, episode.lost = False, lost
        episode.transcript.turns.append((code[: self._max_code_chars], observation))
        return observation, reward, not lost, lost, dict(step_info(verdict, episode.briefing, reward))

    def continue_episode(self) -> None:
        """Permit one more submission for the same task, after a step that terminated.

        This is how a wrapper such as :class:`gym_kernel.wrappers.RepairBudget` grants repairs; it calls this
        through :meth:`gymnasium.Env.get_wrapper_attr`, past the wrappers in between.

        Raises:
            ResetNeeded: There is no episode, or the evaluator failed in it.
        """
        if self._episode is None or self._episode.lost:
            raise ResetNeeded("There is no episode to continue: call reset().")
        self._episode.open = True

    def render(self) -> str | None:
        """The conversation of this episode so far, as text; ``None`` without ``render_mode="ansi"``.

        Raises:
            ResetNeeded: No episode has begun.
        """
        if self.render_mode is None:
            gym.logger.warn(
                'render() needs a render mode. Pass render_mode="ansi" when the environment is made.'
            )
            return None
        if self._episode is None:
            raise ResetNeeded("There is nothing to render yet: call reset() first.")
        return self._episode.transcript.text()

    def close(self) -> None:
        """Let go of the evaluator; a second call does nothing. ``reset`` opens it again."""
        self._episode = None
        self._evaluator = None
        if self._closer is not None:
            self._closer()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_evaluator": None, "_closer": None}

    def _choose(self, options: dict[str, Any]) -> Task:
        if not isinstance(options, dict):
            raise ConfigurationError(f'options must be a dict such as {{"task": id}}, not {options!r}.')
        unknown = sorted(str(key) for key in options if key != "task")
        if unknown:
            raise ConfigurationError(
                f"reset() does not know the option {', '.join(map(repr, unknown))}. "
                'Pass options={"task": id}, or no options at all.'
            )
        if "task" in options:
            return self._named(options["task"])
        return self._tasks[self.task_ids[int(self.np_random.integers(len(self._tasks)))]]

    def _named(self, task_id: Any) -> Task:
        if not isinstance(task_id, str) or task_id not in self._tasks:
            raise TaskError(
                f"This environment has no task {task_id!r}. It has {', '.join(self._tasks)}; "
                "others are added by the argument tasks= when it is made."
            )
        return self._tasks[task_id]

    def _open_evaluator(self) -> Evaluator:
        if self._evaluator is None:
            self._evaluator = Evaluator(self._config)
            # Runs as well when the environment is dropped and at interpreter exit, unlike __del__.
            self._closer = weakref.finalize(self, self._evaluator.close)
        return self._evaluator

    def _judge(self, episode: _Episode, reply: str, code: str) -> Verdict:
        reason = objection(code, self._max_code_chars)
        submission = Submission(episode.task, reply)
        if reason:
            return refuse(submission, episode.briefing, reason)
        try:
            return self._open_evaluator().evaluate(submission)
        except GymKernelError as error:
            # The vector environments of Gymnasium do not survive a step that raises.
            return unevaluated(submission, episode.briefing, f"The evaluator could not be reached: {error}")


def _reward(verdict: Verdict) -> float:
    if verdict.roofline is None or verdict.runtime_us is None:
        return turn_reward(False, _NAN, _NAN)
    return turn_reward(verdict.correct, verdict.roofline.t_min_us, verdict.runtime_us)
