"""``KernelEnvironment``: what OpenEnv's server makes for each session."""

from __future__ import annotations

import math
import uuid
from typing import Any, TypeVar

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata

from gym_kernel import __version__
from gym_kernel.envs.kernel_env import KernelEnv
from gym_kernel.errors import ConfigurationError
from gym_kernel.integrations.openenv.models import KernelAction, KernelObservation, KernelState
from gym_kernel.integrations.openenv.rubric import TurnRubric
from gym_kernel.integrations.openenv.settings import ServerSettings
from gym_kernel.integrations.openenv.shared_evaluator import SharedEvaluator
from gym_kernel.rewards import CORRECT_REWARD, SPEED_REWARD
from gym_kernel.wrappers.repair_budget import RepairBudget

__all__ = ["KernelEnvironment"]

_MAX_EPISODE_ID_CHARS = 255

_T = TypeVar("_T")


class KernelEnvironment(Environment[KernelAction, KernelObservation, KernelState]):
    """One session: a :class:`~gym_kernel.envs.kernel_env.KernelEnv` of its own under a repair budget.

    Sessions share the evaluator and nothing else, so that each sees its own task, turns and verdicts.

    Args:
        settings: What the sessions have in common.
        shared: Their evaluator; ``None`` leaves it to the environments to start and end one.

    Raises:
        ConfigurationError: A setting is out of its domain.
        TaskError: The settings name a task that does not exist.

    Example:
        >>> session = KernelEnvironment(ServerSettings(tasks=("relu",), device="cpu"))
        >>> session.state.step_count
        0
        >>> session.close()
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self, settings: ServerSettings = ServerSettings(), shared: SharedEvaluator | None = None
    ) -> None:
        self._turn_rubric = TurnRubric()
        super().__init__(rubric=self._turn_rubric)
        env = KernelEnv(
            tasks=settings.tasks,
            device=settings.device,
            kernelbench=settings.kernelbench,
            isolation=settings.isolation,
            timeout_s=settings.timeout_s,
            record_dir=settings.record_dir,
        )
        self._env = RepairBudget(env, turns=settings.turns, discount=settings.discount)
        self._task_ids = env.task_ids
        self._shared = shared or SharedEvaluator(settings)
        self._state = KernelState()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task: str | None = None,
        **unknown: Any,
    ) -> KernelObservation:
        """Begin an episode.

        Args:
            seed: Seeds the draw of this and later tasks of the session.
            episode_id: Name of the episode; a fresh one by default.
            task: Id of the task; drawn by default.
            unknown: Anything else is refused by name.

        Returns:
            The prompt, without a reward.

        Raises:
            ConfigurationError: An argument is unknown or out of its domain.
            TaskError: The server has no such task, or its reference does not run.
            GymKernelError: The evaluator could not be started.
        """
        if unknown:
            raise ConfigurationError(
                f"reset does not know {', '.join(sorted(map(repr, unknown)))}. It takes seed, episode_id and task."
            )
        _check_reset(seed, episode_id)
        self._state = KernelState()
        self._reset_rubric()
        with self._shared.request():
            prompt, info = self._env.reset(seed=seed, options=None if task is None else {"task": task})
        observation = _observation(prompt, info)
        self._state = KernelState(episode_id=episode_id or uuid.uuid4().hex, **_progress(observation))
        return observation

    def step(self, action: KernelAction, timeout_s: float | None = None, **_: Any) -> KernelObservation:
        """Judge one submission.

        Args:
            action: The submission.
            timeout_s: Refused: how long a submission may take is the server's to say.

        Returns:
            Feedback, with the reward of this submission.

        Raises:
            ConfigurationError: ``timeout_s`` was given.
            ResetNeeded: The episode is over, or none has begun.
        """
        if timeout_s is not None:
            raise ConfigurationError(
                "A step has no time limit of its own: it is set for the server, by `gym-kernel serve --timeout`."
            )
        with self._shared.request():
            text, _reward, terminated, truncated, info = self._env.step(action.code)
        observation = _observation(text, info, done=terminated or truncated, truncated=truncated)
        observation.reward = self._apply_rubric(action, observation)
        observation.correctness_reward = CORRECT_REWARD * (self._turn_rubric.correctness.last_score or 0.0)
        observation.speed_reward = SPEED_REWARD * (self._turn_rubric.speed.last_score or 0.0)
        self._state = KernelState(episode_id=self._state.episode_id, **_progress(observation))
        return observation

    @property
    def state(self) -> KernelState:
        """Where the episode stands."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Name, description and version, for ``/metadata``."""
        return EnvironmentMetadata(
            name="gym_kernel",
            description=(
                "Write a faster GPU kernel for a PyTorch module; the reward is measured, not believed. "
                f"Tasks: {', '.join(self._task_ids)}."
            ),
            version=__version__,
        )

    def close(self) -> None:
        """End the session; a second call does nothing."""
        self._env.close()


def _check_reset(seed: Any, episode_id: Any) -> None:
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ConfigurationError(f"seed must be a whole number, at least 0, or null, not {seed!r}.")
    if episode_id is not None and (
        not isinstance(episode_id, str) or not 1 <= len(episode_id) <= _MAX_EPISODE_ID_CHARS
    ):
        raise ConfigurationError(
            f"episode_id must be a text of 1 to {_MAX_EPISODE_ID_CHARS} characters, or null."
        )


def _observation(
    text: str, info: dict[str, Any], done: bool = False, truncated: bool = False
) -> KernelObservation:
    # The reward is the rubric's to give; everything else that is declared under a key of the info is taken from it.
    fields = {
        key: _known(info[key]) for key in KernelObservation.model_fields if key in info and key != "reward"
    }
    return KernelObservation(text=text, done=done, truncated=truncated, **fields)


def _known(value: _T) -> _T | None:
    return None if isinstance(value, float) and math.isnan(value) else value


def _progress(observation: KernelObservation) -> dict[str, Any]:
    return {
        "step_count": observation.turn,
        "task": observation.task,
        "status": observation.status,
        "turns_left": observation.turns_left,
        "episode_return": observation.episode_return,
        "done": observation.done,
    }
