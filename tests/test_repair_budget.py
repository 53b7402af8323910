"""``RepairBudget`` with the real evaluator on the CPU."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import Autoreset, RecordEpisodeStatistics, TimeLimit

from gym_kernel import ConfigurationError
from gym_kernel.wrappers import FeedbackMask, RepairBudget

pytestmark = pytest.mark.usefixtures("warm_evaluator")

GOOD = (Path(__file__).parents[1] / "examples" / "kernels" / "relu.py").read_text(encoding="utf-8")
BAD = "x = 1"


def test_check_env_finds_nothing(make_env: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Said of every wrapped environment, whatever the wrapper does.
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version.*")
        check_env(RepairBudget(make_env()))


def test_a_failure_may_be_repaired(make_env: Any) -> None:
    env = RepairBudget(make_env())
    prompt, info = env.reset()
    assert prompt.endswith("each weighted 0.4 times the one before.")
    assert "You have 2 submissions" in prompt
    assert (info["turn"], info["turns_left"], info["episode_return"]) == (0, 2, 0.0)

    observation, reward, terminated, truncated, info = env.step(BAD)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert (info["turn"], info["turns_left"], info["episode_return"]) == (1, 1, 0.0)
    assert "Submission 1 of 2 is done; 1 left" in observation

    observation, reward, terminated, truncated, info = env.step(GOOD)
    assert (info["status"], terminated, truncated) == ("correct", True, False), observation
    assert (info["turn"], info["turns_left"]) == (2, 0)
    assert reward == info["reward"] > 0.3
    assert info["episode_return"] == pytest.approx(0.4 * reward)
    assert "The episode is over after 2 of 2 submissions." in observation

    with pytest.raises(ResetNeeded):
        env.step(GOOD)
    assert env.reset()[1]["turns_left"] == 2


def test_a_correct_kernel_may_be_improved_unless_told_to_stop(make_env: Any) -> None:
    env = RepairBudget(make_env(), turns=3, discount=0.5)
    env.reset()
    _, first, terminated, *_ = env.step(GOOD)
    assert terminated is False
    _, second, *_, info = env.step(GOOD)
    assert info["episode_return"] == pytest.approx(first + 0.5 * second)

    env = RepairBudget(make_env(), turns=3, stop_when_correct=True)
    env.reset()
    assert env.step(BAD)[2] is False
    _, _, terminated, _, info = env.step(GOOD)
    assert terminated is True
    assert (info["turn"], info["turns_left"]) == (2, 0)


def test_one_turn_is_the_bare_environment(make_env: Any) -> None:
    env = RepairBudget(make_env(), turns=1)
    assert env.reset()[0].endswith("You have 1 submission.")
    assert env.step(BAD)[2] is True


def test_ending_early_and_resetting_gives_a_full_budget(make_env: Any) -> None:
    env = RepairBudget(make_env())
    env.reset()
    env.step(BAD)
    env.reset()
    assert env.step(BAD)[2] is False
    assert env.step(BAD)[2] is True


def test_infos_have_the_same_keys_and_types(make_env: Any) -> None:
    env = RepairBudget(make_env())
    infos = [env.reset()[1], env.step(BAD)[4], env.step(GOOD)[4]]
    assert len({tuple((key, type(value)) for key, value in info.items()) for info in infos}) == 1
    assert math.isnan(infos[0]["runtime_us"])


def test_notes_survive_in_a_short_observation(make_env: Any) -> None:
    env = RepairBudget(make_env(max_observation_chars=1_024))
    prompt, _ = env.reset()
    assert prompt in env.observation_space
    assert "You have 2 submissions" in prompt


def test_the_transcript_holds_every_turn(make_env: Any) -> None:
    env = RepairBudget(make_env(render_mode="ansi"))
    env.reset()
    env.step(BAD)
    env.step(BAD)
    assert "=== feedback 2 ===" in env.render()


def test_ordinary_wrappers_may_sit_on_either_side(make_env: Any) -> None:
    env = RecordEpisodeStatistics(RepairBudget(make_env()))
    env.reset()
    env.step(BAD)
    *_, info = env.step(BAD)
    assert info["episode"]["l"] == 2


def test_the_spec_survives_json(make_env: Any) -> None:
    env = RepairBudget(make_env(), turns=3, discount=0.5, stop_when_correct=True)
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, RepairBudget)
    assert again.spec == env.spec
    again.close()


@pytest.mark.parametrize(
    "kwargs", [{"turns": 0}, {"turns": 1.5}, {"turns": True}, {"discount": -0.1}, {"discount": 2}]
)
def test_arguments_are_checked(make_env: Any, kwargs: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(kwargs))):
        RepairBudget(make_env(), **kwargs)


def test_only_kernel_environments_are_wrapped() -> None:
    with pytest.raises(ConfigurationError, match="wraps a KernelEnv"):
        RepairBudget(gymnasium.make("CartPole-v1"))


def test_a_second_budget_is_refused() -> None:
    env = RepairBudget(gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu"))
    assert env.turn_budget == 2
    with pytest.raises(ConfigurationError, match="has a RepairBudget already"):
        RepairBudget(env, turns=3)
    env.close()


@pytest.mark.parametrize(
    ("inner", "says"),
    [
        (Autoreset, r"Autoreset goes round RepairBudget.*Autoreset\(RepairBudget\(env\)\)"),
        (lambda env: RecordEpisodeStatistics(TimeLimit(env, 1)), r"has a TimeLimit.*turns="),
        (FeedbackMask, r"FeedbackMask goes round RepairBudget"),
    ],
)
def test_wrappers_that_do_not_go_inside_are_refused_at_once(make_env: Any, inner: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        RepairBudget(inner(make_env()))


def test_the_number_of_turns_is_public(make_env: Any) -> None:
    assert RepairBudget(make_env(), turns=3).turns == 3
