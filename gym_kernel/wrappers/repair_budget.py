"""``RepairBudget``: several submissions in one episode, each after the feedback on the one before."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from gym_kernel.envs.text_space import KernelText, clean_text
from gym_kernel.errors import ConfigurationError
from gym_kernel.rewards import episode_return
from gym_kernel.wrappers.feedback_mask import FeedbackMask
from gym_kernel.wrappers.wrapper_order import (
    MASK_INSIDE_BUDGET,
    check_no_autoreset,
    check_no_time_limit,
    layers,
)

__all__ = ["RepairBudget"]


class RepairBudget(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Grant a policy ``turns`` submissions an episode, and tell it how many are left.

    ``terminated`` is held back until the budget is spent. Each step's reward is the submission's own; the
    discounted sum is in ``info["episode_return"]``. A failure of the evaluator (``truncated``) ends the
    episode.

    Info gains ``turn`` (submissions made), ``turns_left`` and ``episode_return``.

    Args:
        env: A :class:`~gym_kernel.envs.KernelEnv`, or one under wrappers that leave the observation a text.
        turns: Submissions in an episode, at least 1.
        discount: Weight of each submission's reward relative to the one before it, in [0, 1].
        stop_when_correct: End the episode at the first correct submission. Otherwise a correct kernel may
            still be made faster.

    Raises:
        ConfigurationError: An argument is out of its domain, ``env`` is not a kernel environment, or it has a
            wrapper that does not go inside: another budget, ``FeedbackMask``, gymnasium's ``Autoreset`` or
            ``TimeLimit``.

    Example:
        >>> import gymnasium
        >>> env = RepairBudget(gymnasium.make("gym_kernel:KernelEnv-v0", device="cpu"), turns=2)
        >>> env.spec.additional_wrappers[-1].kwargs
        {'turns': 2, 'discount': 0.4, 'stop_when_correct': False}
    """

    def __init__(
        self, env: gym.Env[str, str], turns: int = 2, discount: float = 0.4, stop_when_correct: bool = False
    ) -> None:
        if not isinstance(turns, int) or isinstance(turns, bool) or turns < 1:
            raise ConfigurationError(
                f"turns must be a whole number of submissions, at least 1, not {turns!r}."
            )
        if not isinstance(discount, (int, float)) or not 0 <= discount <= 1:
            raise ConfigurationError(f"discount must be a number from 0 to 1, not {discount!r}.")
        RecordConstructorArgs.__init__(
            self, turns=turns, discount=discount, stop_when_correct=stop_when_correct
        )
        super().__init__(env)
        if env.has_wrapper_attr("turn_budget"):
            raise ConfigurationError(
                "This environment has a RepairBudget already; give that one the number of turns that you want."
            )
        if not env.has_wrapper_attr("continue_episode") or not isinstance(env.observation_space, KernelText):
            raise ConfigurationError(
                f"RepairBudget wraps a KernelEnv whose observations are text, not {env}. "
                "Apply it right after gymnasium.make, before wrappers that change observations."
            )
        if any(isinstance(layer, FeedbackMask) for layer in layers(env)):
            raise ConfigurationError(MASK_INSIDE_BUDGET)
        check_no_autoreset(env, "RepairBudget")
        check_no_time_limit(env, "RepairBudget")
        self._turns = turns
        self._discount = float(discount)
        self._stop_when_correct = bool(stop_when_correct)
        self._max_chars = env.observation_space.max_length
        self._rewards: list[float] = []

    @property
    def turns(self) -> int:
        """Submissions in an episode."""
        return self._turns

    @property
    def turn_budget(self) -> int:
        """The same under a name that no other wrapper has, for ``get_wrapper_attr``."""
        return self._turns

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode with a full budget; the prompt says how large it is."""
        prompt, info = self.env.reset(seed=seed, options=options)
        self._rewards = []
        return self._noted(prompt, self._offer()), self._counted(info, self._turns)

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Judge one submission; ``terminated`` only when none is left."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._rewards.append(float(reward))
        solved = self._stop_when_correct and bool(info["correct"])
        left = 0 if truncated or solved else self._turns - len(self._rewards)
        if left:
            self.env.get_wrapper_attr("continue_episode")()
        noted = self._noted(observation, self._status(left))
        return noted, reward, terminated and not left, truncated, self._counted(info, left)

    def _noted(self, observation: str, note: str) -> str:
        return clean_text(f"{observation}\n\n{note}", self._max_chars)

    def _counted(self, info: dict[str, Any], left: int) -> dict[str, Any]:
        total = episode_return(self._rewards, self._discount)
        return {**info, "turn": len(self._rewards), "turns_left": left, "episode_return": total}

    def _offer(self) -> str:
        if self._turns == 1:
            return "You have 1 submission."
        return (
            f"You have {self._turns} submissions, with feedback after each. The return is the sum of their "
            f"rewards, each weighted {self._discount:g} times the one before."
        )

    def _status(self, left: int) -> str:
        made = len(self._rewards)
        if not left:
            return f"The episode is over after {made} of {self._turns} submissions."
        weight = math.pow(self._discount, made)
        return (
            f"Submission {made} of {self._turns} is done; {left} left. Send the whole module again. "
            f"The next reward counts {weight:.3g} times."
        )
