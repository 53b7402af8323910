"""Returns and advantages of groups of episodes, turn by turn, as pure functions on NumPy arrays.

A group is several episodes of one task from one policy. Arrays have the shape ``(group, turns)``. ``nan`` marks a
turn that does not exist or must not be learnt from: an episode that ended early lacks its last turns, and one that
the evaluator lost (``truncated``) is ``nan`` throughout. Such entries count in no baseline, and their advantage is
``nan`` again: leave these turns out of the loss.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gym_kernel.errors import ConfigurationError

__all__ = ["discounted_returns", "dr_grpo", "leave_one_out"]

Floats = NDArray[np.float64]


def discounted_returns(rewards: ArrayLike, discount: float) -> Floats:
    """Return of each turn: its reward and the discounted ones after it, ``R_t = sum_k discount^k r_(t+k)``.

    The return of a policy gradient with reward to go (Sutton and Barto, "Reinforcement Learning", 2nd edition,
    section 13.3), applied to turns as in Kevin (Baronio et al. 2025, arXiv:2507.11948, discounted sum).

    Args:
        rewards: Rewards of shape ``(turns,)`` or ``(group, turns)``, by turn along the last axis. ``nan`` at the
            end of a row: the episode had ended.
        discount: Weight of each turn relative to the one before it, in [0, 1].

    Returns:
        Float64 array of the same shape; ``nan`` where ``rewards`` is.

    Raises:
        ConfigurationError: A shape, the discount or a reward is out of its domain, or a turn follows a missing one.

    Example:
        >>> discounted_returns([0.5, 2.5], discount=0.4)
        array([1.5, 2.5])
        >>> discounted_returns([[1.0, 2.0], [3.0, float("nan")]], discount=0.5)
        array([[ 2.,  2.],
               [ 3., nan]])
    """
    values = _array("rewards", rewards)
    if isinstance(discount, bool) or not isinstance(discount, Real) or not 0 <= discount <= 1:
        raise ConfigurationError(f"discount must be a finite number from 0 to 1, not {discount!r}.")
    missing = np.isnan(values)
    if np.any(missing[..., :-1] & ~missing[..., 1:]):
        raise ConfigurationError(
            "rewards has a number after a nan in a row, but an episode has no turns after its end. "
            "Set the whole row to nan to leave the episode out."
        )
    returns = np.where(missing, 0.0, values)
    for turn in reversed(range(returns.shape[-1] - 1)):
        returns[..., turn] += discount * returns[..., turn + 1]
    return np.where(missing, np.nan, returns)


def leave_one_out(returns: ArrayLike) -> Floats:
    """Return less the mean of the *other* episodes' returns at the same turn (RLOO by turn, "TRLOO").

    The baseline does not depend on the episode itself, so the policy gradient stays unbiased. The baseline is
    Kool et al. 2019 ("Buy 4 REINFORCE Samples, Get a Baseline for Free!"), for language models Ahmadian et al.
    2024 (RLOO, arXiv:2402.14740), turn by turn Liu et al. 2026 (Dr. Kernel, arXiv:2602.05885). Where all ``n``
    episodes have the turn, it is ``n / (n - 1)`` times :func:`dr_grpo`.

    Args:
        returns: Returns of one group, of shape ``(group, turns)``, or ``(group,)`` for one number an episode.

    Returns:
        Float64 array of the same shape; ``nan`` where ``returns`` is, and where no other episode has the turn.

    Raises:
        ConfigurationError: The shape is another, the group has one episode, or a return is infinite.

    Example:
        >>> leave_one_out([[3.0, 1.0], [0.0, float("nan")], [0.0, 2.0]])
        array([[ 3. , -1. ],
               [-1.5,  nan],
               [-1.5,  1. ]])
    """
    values = _group(returns)
    others = np.sum(~np.isnan(values), axis=0) - 1
    baseline = (np.nansum(values, axis=0) - values) / np.where(others > 0, others, 1)
    return np.where(others > 0, values - baseline, np.nan)


def dr_grpo(returns: ArrayLike) -> Floats:
    """Return less the group's mean at the same turn, not divided by the standard deviation (Dr. GRPO).

    Liu et al. 2025, "Understanding R1-Zero-Like Training: A Critical Perspective", arXiv:2503.20783: the division
    would weigh tasks that are nearly solved, or nearly never, above the rest. The other half of Dr. GRPO, not
    dividing by a reply's length, is the loss's business (TRL: ``loss_type="dr_grpo"``).

    Args:
        returns: Returns of one group, of shape ``(group, turns)``, or ``(group,)`` for one number an episode.

    Returns:
        Float64 array of the same shape; ``nan`` where ``returns`` is. A turn that one episode alone has gets 0:
        nothing is learnt from it.

    Raises:
        ConfigurationError: The shape is another, the group has one episode, or a return is infinite.

    Example:
        >>> dr_grpo([[3.0, 1.0], [0.0, float("nan")], [0.0, 2.0]])
        array([[ 2. , -0.5],
               [-1. ,  nan],
               [-1. ,  0.5]])
    """
    values = _group(returns)
    present = np.sum(~np.isnan(values), axis=0)
    return values - np.nansum(values, axis=0) / np.where(present > 0, present, 1)


def _group(returns: ArrayLike) -> Floats:
    values = _array("returns", returns)
    if len(values) < 2:
        raise ConfigurationError(
            "returns holds a group of one episode, which has nothing to be compared with. "
            "Sample at least two episodes of each task; rows are episodes, columns are turns."
        )
    return values


def _array(name: str, values: ArrayLike) -> Floats:
    try:
        array: NDArray[Any] = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{name} must be numbers in rows of equal length; fill up the turns that an episode lacks with nan."
        ) from error
    if array.ndim not in (1, 2) or array.size == 0:
        raise ConfigurationError(
            f"{name} must have one axis or two, (group, turns), and at least one entry, not shape {array.shape}."
        )
    if np.isinf(array).any():
        raise ConfigurationError(f"{name} must be finite, or nan for a turn that does not exist.")
    return array
