"""``KernelVectorEnv``: many kernel environments, stepped at once over shared evaluator hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Thread
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Text
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array

from gym_kernel.envs.counts import check_count
from gym_kernel.envs.kernel_env import KernelEnv
from gym_kernel.envs.vector_devices import spread
from gym_kernel.envs.vector_reset import first_seed, plan_reset
from gym_kernel.errors import ConfigurationError

__all__ = ["KernelVectorEnv"]

Result = TypeVar("Result")
Wrap = Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]


class KernelVectorEnv(VectorEnv[tuple[str, ...], Sequence[str], "np.ndarray[Any, Any]"]):
    """Step ``num_envs`` kernel environments concurrently; what waits for a compiler does not hold up the others.

    Ordinary environments with ordinary wrappers, each on a thread of its own. Those on one device share one
    evaluator host, so a slow compile occupies a compile slot and not the device. It is what
    ``gymnasium.make_vec("gym_kernel:KernelEnv-v0", num_envs=16)`` makes.

    Observations are a tuple of ``str``, one for each environment (an array where wrappers make them numeric);
    ``step`` takes a list, tuple or array of as many replies. A wrapper of your own that raises costs the step of all.
    Rewards are float64 of shape ``(num_envs,)``, terminations and truncations are bool of the same shape, infos
    are Gymnasium's arrays by key.

    Args:
        num_envs: How many environments.
        tasks: As for :class:`~gym_kernel.envs.kernel_env.KernelEnv`.
        device: As for ``KernelEnv``, or a list of devices to spread the groups over. ``"auto"`` takes every
            GPU that is visible, or the CPU where there is none.
        groups: Size of a group, for GRPO: environments ``0 .. groups - 1`` get the same task, on the same
            device, then the next ``groups``, and so on. ``num_envs`` must be a multiple of it. It is the n-th
            episode since the last full reset that members share: with ``stop_when_correct`` in ``SAME_STEP`` one
            of them may be an episode ahead.
        turns: Submissions an episode, by :class:`~gym_kernel.wrappers.RepairBudget`; ``None`` leaves the bare
            environment with its one.
        discount: ``RepairBudget``'s discount.
        stop_when_correct: ``RepairBudget``'s.
        wrappers: More wrappers, applied in order to each environment after ``RepairBudget``.
        autoreset_mode: A :class:`gymnasium.vector.AutoresetMode` or its value. In ``SAME_STEP`` a finished
            environment is reset in the same step, and its last observation and info are in
            ``infos["final_obs"]`` and ``infos["final_info"]``. In ``NEXT_STEP`` the next action of a finished
            environment is ignored and spent on its reset, as Gymnasium defines it: never send a completion
            that matters there. In ``DISABLED`` the caller resets, with ``options={"reset_mask": mask}``.
        **env_kwargs: Everything else that ``KernelEnv`` takes.

    Raises:
        ConfigurationError: An argument is out of its domain.
        TaskError: ``tasks`` names something that does not exist.

    Example:
        >>> envs = KernelVectorEnv(4, tasks="pilot", device="cpu", groups=2, turns=2)
        >>> envs.num_envs, len(envs.observation_space)
        (4, 4)
        >>> envs.close()
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        tasks: Any = "pilot",
        device: str | Sequence[str] = "auto",
        groups: int | None = None,
        turns: int | None = None,
        discount: float = 0.4,
        stop_when_correct: bool = False,
        wrappers: Sequence[Wrap] = (),
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        **env_kwargs: Any,
    ) -> None:
        # The wrapper's module needs this package's text space, and may be the first to be imported.
        from gym_kernel.wrappers.repair_budget import RepairBudget

        super().__init__()
        self.num_envs = num_envs
        self.group_size = 1 if groups is None else groups
        check_count("num_envs", self.num_envs, 1)
        check_count("groups", self.group_size, 1)
        if self.num_envs % self.group_size:
            raise ConfigurationError(
                f"num_envs={num_envs} is no multiple of groups={groups}, the number of episodes for each task; "
                f"pass num_envs={self.group_size * (self.num_envs // self.group_size + 1)}, for instance."
            )
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.devices = spread(device, self.num_envs // self.group_size)

        def make(position: int) -> gym.Env[Any, Any]:
            where = self.devices[position // self.group_size]
            env: gym.Env[Any, Any] = KernelEnv(tasks=tasks, device=where, **env_kwargs)
            if turns is not None:
                env = RepairBudget(env, turns, discount, stop_when_correct)
            for wrap in wrappers:
                env = wrap(env)
            return env

        self.envs = tuple(make(position) for position in range(self.num_envs))
        first = self.envs[0]
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self.action_space = batch_space(first.action_space, self.num_envs)
        self._slots = tuple(_Slot(env) for env in self.envs)
        self._pending: list[Future[Any]] = []

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Begin episodes in all environments, or in those of a mask.

        Args:
            seed: One for all, from which group ``g`` gets ``seed + g``; or a sequence of one for each group or
                for each environment. Environments of a group that get the same seed draw the same tasks, now
                and at later resets.
            options: ``{"tasks": ids}`` names one task for each group or for each environment, ``{"task": id}``
                one for all, ``{"reset_mask": mask}`` resets only where the bool array of shape ``(num_envs,)``
                is true. A mask must hold whole groups, or name their tasks.

        Returns:
            Prompts and infos; outside the mask the observations of before, and no infos.

        Raises:
            ConfigurationError: An option is unknown or has the wrong length.
            TaskError: A task is none of the environments'.
            EvaluatorError: The evaluator could not be started.
        """
        super().reset(seed=first_seed(seed))
        self.closed = False
        plan = plan_reset(self.num_envs, self.group_size, seed, options, self.np_random)
        reset = self._run(lambda position: self._slots[position].reset(*plan.of(position)), plan.positions)
        infos: dict[str, Any] = {}
        for position, info in zip(plan.positions, reset, strict=True):
            infos = self._add_info(infos, info, position)
        return self._observed(), infos

    def step(
        self, actions: Sequence[str]
    ) -> tuple[tuple[Any, ...], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Judge one reply in each environment, all at once.

        Args:
            actions: One reply for each environment. Where ``NEXT_STEP`` resets, the reply is ignored.

        Returns:
            Observations, rewards, terminations, truncations and infos.

        Raises:
            ConfigurationError: There are too few or too many actions.
            ResetNeeded: Nothing was reset yet, or, in ``DISABLED``, a finished environment was not.
        """
        self._check(actions)
        steps = self._run(
            lambda i: self._slots[i].step(actions[i], self.autoreset_mode), range(self.num_envs)
        )
        infos: dict[str, Any] = {}
        for position, step in enumerate(steps):
            for info in step.infos:
                infos = self._add_info(infos, info, position)
        rewards = np.array([step.reward for step in steps], dtype=np.float64)
        terminations = np.array([step.terminated for step in steps], dtype=np.bool_)
        truncations = np.array([step.truncated for step in steps], dtype=np.bool_)
        return self._observed(), rewards, terminations, truncations, infos

    def render(self) -> tuple[Any, ...]:
        """What each environment renders."""
        return tuple(env.render() for env in self.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or read an attribute, past the wrappers."""
        found = [env.get_wrapper_attr(name) for env in self.envs]
        return tuple(each(*args, **kwargs) if callable(each) else each for each in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute: from a list or tuple one value for each environment, else one for all."""
        each = list(values) if isinstance(values, (list, tuple)) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise ConfigurationError(
                f"Pass {self.num_envs} values, one for each environment, not {len(each)}."
            )
        for env, value in zip(self.envs, each, strict=True):
            env.set_wrapper_attr(name, value)

    def close_extras(self, **kwargs: Any) -> None:
        """Close every environment; evaluations under way are given up."""
        for env in self.envs:
            env.close()
        for slot in self._slots:
            slot.begun = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pending": []}

    def _observed(self) -> Any:
        observations = tuple(slot.observation for slot in self._slots)
        if isinstance(self.single_observation_space, Text):
            return observations
        empty: Any = create_empty_array(self.single_observation_space, self.num_envs)
        return concatenate(self.single_observation_space, observations, empty)

    def _run(self, work: Callable[[int], Result], positions: Iterable[int]) -> list[Result]:
        """Do this for several environments at once; an error is raised when all of them are done."""
        # An interrupted call may have left some under way; an environment is nobody else's until it is done.
        wait(self._pending)
        self._pending = [_begin(work, position) for position in positions]
        wait(self._pending)
        return [future.result() for future in self._pending]

    def _check(self, actions: Sequence[str]) -> None:
        several = isinstance(actions, (list, tuple, np.ndarray))
        if not several or len(actions) != self.num_envs:
            found = f"{len(actions)} entries" if several else f"a {type(actions).__name__}"
            raise ConfigurationError(
                f"step() takes a list of {self.num_envs} replies, one for each environment, not {found}."
            )
        if isinstance(self.single_action_space, Text):
            # Before anything is judged: the others' submissions would be lost with this one.
            for position, action in enumerate(actions):
                if not isinstance(action, str):
                    raise ConfigurationError(
                        f"Action {position} is a {type(action).__name__}; an action is a str, the policy's reply."
                    )
        for slot in self._slots:
            if slot.error is not None:
                error, slot.error = slot.error, None
                raise error
        if not all(slot.begun for slot in self._slots):
            raise ResetNeeded("Call reset() before step(): some environments have no episode.")
        if self.autoreset_mode is AutoresetMode.DISABLED:
            finished = [position for position, slot in enumerate(self._slots) if slot.done]
            if finished:
                raise ResetNeeded(
                    f"Environments {finished} have finished: call "
                    'reset(options={"reset_mask": terminations | truncations}) before the next step.'
                )


def _begin(work: Callable[[int], Result], position: int) -> Future[Result]:
    """Start work on a thread that does not keep the interpreter from ending."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work(position))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name=f"kernel-env-{position}", daemon=True).start()
    return future


@dataclass(frozen=True)
class _Step:
    """What one environment's step came to; its infos in the order in which they are merged."""

    reward: float
    terminated: bool
    truncated: bool
    infos: tuple[dict[str, Any], ...]


@dataclass
class _Slot:
    """One environment and where it is in its episode; used by one thread at a time.

    Attributes:
        env: The environment.
        observation: Its last observation.
        begun: Whether it has an episode.
        done: Whether that has ended and still waits for its reset.
        error: Why the reset after its last episode failed; told at the next step, so that this one is not lost.
    """

    env: gym.Env[Any, Any]
    observation: Any = ""
    begun: bool = False
    done: bool = False
    error: Exception | None = None

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> dict[str, Any]:
        """Begin an episode; returns its info."""
        self.begun = False
        self.error = None
        self.observation, info = self.env.reset(seed=seed, options=options)
        self.begun, self.done = True, False
        return info

    def step(self, action: Any, mode: AutoresetMode) -> _Step:
        """One step, with the reset that the mode asks for."""
        if self.done:
            return _Step(0.0, False, False, (self.reset(),))
        self.observation, reward, terminated, truncated, info = self.env.step(action)
        self.done = bool(terminated or truncated)
        infos: tuple[dict[str, Any], ...] = (info,)
        if self.done and mode is AutoresetMode.SAME_STEP:
            infos = ({"final_obs": self.observation, "final_info": info}, self._reset_in_the_same_step(info))
        return _Step(float(reward), bool(terminated), bool(truncated), infos)

    def _reset_in_the_same_step(self, last: dict[str, Any]) -> dict[str, Any]:
        try:
            return self.reset()
        except Exception as error:
            self.error = error
            return last


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    for known in AutoresetMode:
        if mode in (known, known.value, known.name):
            return known
    names = ", ".join(repr(known.value) for known in AutoresetMode)
    raise ConfigurationError(f"autoreset_mode must be one of {names}, not {mode!r}.")
