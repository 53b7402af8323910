from __future__ import annotations

import math
import subprocess
import sys

import pytest

from gym_kernel.rewards import episode_return, turn_reward


@pytest.mark.parametrize(
    ("runtime_us", "expected"), [(100.0, 3.0), (80.0, 3.0), (200.0, 1.65), (2_700.0, 0.4), (1e12, 0.3)]
)
def test_a_correct_kernel_earns_by_its_share_of_the_roofline(runtime_us: float, expected: float) -> None:
    assert turn_reward(True, 100.0, runtime_us) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("runtime_us", [math.nan, 0.0, -1.0, math.inf, 100.0])
def test_an_incorrect_kernel_earns_nothing_whatever_its_time(runtime_us: float) -> None:
    assert turn_reward(False, math.nan, runtime_us) == 0.0


@pytest.mark.parametrize("bad", [math.nan, 0.0, -1.0, math.inf])
def test_a_correct_kernel_without_a_usable_time_is_a_mistake_of_the_caller(bad: float) -> None:
    with pytest.raises(ValueError, match="finite, positive runtime_us"):
        turn_reward(True, 100.0, bad)
    with pytest.raises(ValueError, match="finite, positive t_min_us"):
        turn_reward(True, bad, 100.0)


def test_the_return_of_two_turns() -> None:
    assert episode_return([1.0, 2.0]) == 1.0 + 0.4 * 2.0


def test_the_return_of_no_turn_and_of_many() -> None:
    assert episode_return([]) == 0.0
    assert episode_return([1.0] * 3, discount=0.5) == 1.75
    assert episode_return([1.0, 5.0], discount=0.0) == 1.0


def test_rewards_imports_nothing_of_ours() -> None:
    code = (
        "import importlib.util, sys, gym_kernel; before = set(sys.modules); import gym_kernel.rewards; "
        "print([m for m in set(sys.modules) - before if m != 'gym_kernel.rewards'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
