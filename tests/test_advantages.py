"""Returns and advantages against their definitions."""

from __future__ import annotations

import doctest
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gym_kernel import ConfigurationError, advantages
from gym_kernel.advantages import discounted_returns, dr_grpo, leave_one_out
from gym_kernel.rewards import episode_return

NAN = float("nan")


def _random_returns(group: int, turns: int, missing: float = 0.0) -> np.ndarray:
    random = np.random.default_rng(0)
    returns = random.normal(size=(group, turns))
    returns[random.random(returns.shape) < missing] = NAN
    return returns


def test_the_examples_in_the_docstrings_are_true() -> None:
    results = doctest.testmod(advantages)
    assert results.attempted >= 4
    assert results.failed == 0


@pytest.mark.parametrize("discount", [0.0, 0.4, 1.0])
def test_returns_follow_their_definition(discount: float) -> None:
    rewards = _random_returns(4, 3)
    returns = discounted_returns(rewards, discount)
    assert returns.shape == (4, 3)
    for episode in range(4):
        assert discounted_returns(rewards[episode], discount) == pytest.approx(returns[episode])
        for turn in range(3):
            expected = sum(discount**k * rewards[episode, turn + k] for k in range(3 - turn))
            assert returns[episode, turn] == pytest.approx(expected)
        assert returns[episode, 0] == pytest.approx(episode_return(rewards[episode], discount))


def test_an_episode_that_ended_early_has_the_returns_of_its_own_turns() -> None:
    returns = discounted_returns([[1.0, 2.0, NAN], [NAN, NAN, NAN]], 0.5)
    np.testing.assert_array_equal(returns, [[2.0, 2.0, NAN], [NAN, NAN, NAN]])


def test_the_rewards_are_not_changed() -> None:
    rewards = np.array([[1.0, 2.0], [3.0, NAN]])
    before = rewards.copy()
    discounted_returns(rewards, 0.5)
    leave_one_out(rewards)
    dr_grpo(rewards)
    np.testing.assert_array_equal(rewards, before)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_leave_one_out_compares_each_turn_with_that_turn_of_the_others(missing: float) -> None:
    returns = _random_returns(6, 4, missing)
    advantage = leave_one_out(returns)
    for episode in range(6):
        for turn in range(4):
            others = [returns[other, turn] for other in range(6) if other != episode]
            expected = returns[episode, turn] - np.nanmean(others)
            assert advantage[episode, turn] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_dr_grpo_takes_the_mean_off_and_does_not_divide(missing: float) -> None:
    returns = _random_returns(6, 4, missing)
    np.testing.assert_allclose(dr_grpo(returns), returns - np.nanmean(returns, axis=0))
    np.testing.assert_allclose(dr_grpo(10 * returns), 10 * dr_grpo(returns))


def test_leave_one_out_is_dr_grpo_scaled_by_the_size_of_the_group() -> None:
    returns = _random_returns(5, 2)
    np.testing.assert_allclose(leave_one_out(returns), 5 / 4 * dr_grpo(returns))


def test_an_own_return_does_not_move_an_own_baseline() -> None:
    returns = _random_returns(4, 2)
    changed = returns.copy()
    changed[2, 1] += 7.0
    moved = leave_one_out(changed) - leave_one_out(returns)
    assert moved[2, 1] == pytest.approx(7.0)
    # The mean of the group holds a quarter of it, so Dr. GRPO moves by less.
    assert (dr_grpo(changed) - dr_grpo(returns))[2, 1] == pytest.approx(7.0 * 3 / 4)
    np.testing.assert_array_equal(moved[:, 0], np.zeros(4))


@pytest.mark.parametrize("advantage", [leave_one_out, dr_grpo])
def test_turns_and_lost_episodes_do_not_mix(advantage: Callable[[Any], np.ndarray]) -> None:
    returns = _random_returns(4, 2)
    lost = np.vstack([returns, np.full((1, 2), NAN)])
    np.testing.assert_allclose(advantage(lost)[:4], advantage(returns))
    assert np.isnan(advantage(lost)[4]).all()
    np.testing.assert_allclose(advantage(returns)[:, 1], advantage(returns[:, 1]))


def test_a_turn_that_one_episode_alone_has_teaches_nothing() -> None:
    returns = [[1.0, 5.0], [3.0, NAN]]
    np.testing.assert_array_equal(leave_one_out(returns), [[-2.0, NAN], [2.0, NAN]])
    np.testing.assert_array_equal(dr_grpo(returns), [[-1.0, 0.0], [1.0, NAN]])
    everyone_lost = [[1.0, NAN], [3.0, NAN]]
    assert np.isnan(leave_one_out(everyone_lost)[:, 1]).all()
    assert np.isnan(dr_grpo(everyone_lost)[:, 1]).all()


@pytest.mark.parametrize("advantage", [leave_one_out, dr_grpo])
def test_a_group_of_one_is_refused(advantage: Callable[[Any], np.ndarray]) -> None:
    for alone in ([1.0], [[1.0, 2.0]]):
        with pytest.raises(ConfigurationError, match="at least two episodes"):
            advantage(alone)


@pytest.mark.parametrize(
    "advantage", [leave_one_out, dr_grpo, lambda values: discounted_returns(values, 0.4)]
)
@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (1.0, "shape \\(\\)"),
        ([], "shape \\(0,\\)"),
        ([[], []], "shape \\(2, 0\\)"),
        (np.zeros((2, 2, 2)), "shape \\(2, 2, 2\\)"),
        ([[1.0, 2.0], [3.0]], "rows of equal length"),
        (["a", "b"], "must be numbers"),
        ([[1.0, 2.0], [math.inf, 3.0]], "must be finite"),
    ],
)
def test_other_shapes_and_values_are_refused(
    advantage: Callable[[Any], np.ndarray], values: Any, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        advantage(values)


@pytest.mark.parametrize("discount", [NAN, math.inf, -0.1, 1.5, "0.4", None, True])
def test_discounts_are_checked(discount: Any) -> None:
    with pytest.raises(ConfigurationError, match="discount must be a finite number from 0 to 1"):
        discounted_returns([1.0, 2.0], discount)


def test_a_turn_after_the_end_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="a number after a nan"):
        discounted_returns([[1.0, 1.0], [NAN, 1.0]], 0.4)
