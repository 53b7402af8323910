"""``NumericObservation``: a short vector in the place of text, for agents that read numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs

from gym_kernel.envs.text_space import KernelText
from gym_kernel.errors import ConfigurationError
from gym_kernel.rewards import CORRECT_REWARD, SPEED_REWARD

__all__ = ["NumericObservation"]

_Vector = npt.NDArray[np.float32]
_MOST_TURNS = 100.0


@dataclass(frozen=True)
class _Entry:
    """One entry of the vector: its name and bounds. What is not known (``nan``) becomes 0."""

    name: str
    low: float
    high: float


_ENTRIES = (
    _Entry("judged", 0.0, 1.0),
    _Entry("correct", 0.0, 1.0),
    _Entry("reward", 0.0, CORRECT_REWARD + SPEED_REWARD),
    _Entry("log2_speedup", -30.0, 30.0),
    _Entry("roofline_fraction", 0.0, 1.0),
    _Entry("log10_t_min_us", -6.0, 12.0),
    _Entry("log10_reference_us", -6.0, 12.0),
    _Entry("turn", 0.0, _MOST_TURNS),
    _Entry("turns_left", 0.0, _MOST_TURNS),
)


# Gymnasium declares the wrapped env with the outer types, so a wrapper that changes them cannot be written down.
class NumericObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Observe a vector made from info, and keep the text in ``info["text"]``.

    The observation is float32 with one entry for each of :attr:`names`, in this order:

    | entry | meaning | range |
    |---|---|---|
    | ``task_<id>`` | 1 for the task of the episode, else 0; one entry for each of the env's tasks | 0 to 1 |
    | ``judged`` | 0 after ``reset``, 1 after a ``step`` | 0 to 1 |
    | ``correct`` | whether the last submission was correct | 0 to 1 |
    | ``reward`` | its reward | 0 to 3 |
    | ``log2_speedup`` | base-2 logarithm of reference time over its time | -30 to 30 |
    | ``roofline_fraction`` | ``min(t_min / runtime, 1)`` | 0 to 1 |
    | ``log10_t_min_us`` | base-10 logarithm of the roofline floor, in microseconds | -6 to 12 |
    | ``log10_reference_us`` | base-10 logarithm of the reference's time, in microseconds | -6 to 12 |
    | ``turn`` | submissions made in this episode | 0 to 100 |
    | ``turns_left`` | submissions left in this episode | 0 to 100 |

    What is not known (``nan`` in info: every figure of a kernel that was not timed) is 0; what lies outside of its
    range is moved to the nearer bound. Where info has no ``turn``, an episode is one submission.

    :class:`gym_kernel.wrappers.TemplateAction` may go inside or outside of this wrapper;
    :class:`gym_kernel.wrappers.RepairBudget` belongs inside of it, because it writes into the text.

    Args:
        env: A :class:`~gym_kernel.envs.KernelEnv`, or one under wrappers that leave the observation a text.

    Raises:
        ConfigurationError: ``env`` is not a kernel environment whose observations are text.

    Example:
        >>> import gymnasium
        >>> env = NumericObservation(gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu"))
        >>> env.observation_space.shape
        (10,)
        >>> env.names[:3]
        ('task_relu', 'judged', 'correct')
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        if not isinstance(env.observation_space, KernelText) or not env.has_wrapper_attr("task_ids"):
            raise ConfigurationError(
                f"NumericObservation wraps a KernelEnv whose observations are text, not {env}. "
                "Apply it once, after gymnasium.make and RepairBudget."
            )
        self._task_ids: tuple[str, ...] = env.get_wrapper_attr("task_ids")
        tasks = tuple(_Entry(f"task_{task_id}", 0.0, 1.0) for task_id in self._task_ids)
        self._entries = tasks + _ENTRIES
        self._low = np.array([entry.low for entry in self._entries], np.float32)
        self._high = np.array([entry.high for entry in self._entries], np.float32)
        self.observation_space = Box(self._low, self._high)

    @property
    def names(self) -> tuple[str, ...]:
        """What each entry of the observation is."""
        return tuple(entry.name for entry in self._entries)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Vector, dict[str, Any]]:
        """Begin an episode; the prompt is in ``info["text"]``."""
        text, info = self.env.reset(seed=seed, options=options)
        return self._vector(info), {**info, "text": text}

    def step(self, action: Any) -> tuple[_Vector, SupportsFloat, bool, bool, dict[str, Any]]:
        """Judge one submission; the feedback is in ``info["text"]``."""
        text, reward, terminated, truncated, info = self.env.step(action)
        return self._vector(info), reward, terminated, truncated, {**info, "text": text}

    def _vector(self, info: Mapping[str, Any]) -> _Vector:
        judged = info["status"] != ""
        tasks = [float(info["task"] == task_id) for task_id in self._task_ids]
        known = [
            float(judged),
            float(info["correct"]),
            info["reward"],
            _log(info["speedup"], 2.0),
            info["roofline_fraction"],
            _log(info["t_min_us"], 10.0),
            _log(info["reference_us"], 10.0),
            float(info.get("turn", judged)),
            float(info.get("turns_left", not judged)),
        ]
        vector = np.nan_to_num(np.array(tasks + known, np.float64), nan=0.0)
        return np.clip(vector, self._low, self._high).astype(np.float32)


def _log(value: float, base: float) -> float:
    return math.log(value, base) if value > 0 else math.nan
