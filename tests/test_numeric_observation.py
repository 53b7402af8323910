"""``NumericObservation`` with the real evaluator on the CPU."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from gym_kernel import ConfigurationError
from gym_kernel.wrappers import NumericObservation, RepairBudget

pytestmark = pytest.mark.usefixtures("warm_evaluator")

GOOD = (Path(__file__).parents[1] / "examples" / "kernels" / "relu.py").read_text(encoding="utf-8")
BAD = "x = 1"


def named(env: NumericObservation, observation: np.ndarray) -> dict[str, float]:
    assert observation in env.observation_space
    return dict(zip(env.names, observation.tolist(), strict=True))


def test_after_reset_the_task_is_known_and_nothing_is_judged(make_env: Any) -> None:
    env = NumericObservation(make_env(tasks=["relu", "tanh"]))
    observation, info = env.reset(options={"task": "tanh"})
    assert (observation.shape, observation.dtype) == ((11,), np.float32)
    assert named(env, observation) == {
        "task_relu": 0.0,
        "task_tanh": 1.0,
        "judged": 0.0,
        "correct": 0.0,
        "reward": 0.0,
        "log2_speedup": 0.0,
        "roofline_fraction": 0.0,
        "log10_t_min_us": pytest.approx(math.log10(info["t_min_us"])),
        "log10_reference_us": pytest.approx(math.log10(info["reference_us"])),
        "turn": 0.0,
        "turns_left": 1.0,
    }
    assert "Tanh" in info["text"]


def test_after_a_correct_submission_its_figures_are_known(make_env: Any) -> None:
    env = NumericObservation(make_env())
    env.reset()
    observation, reward, terminated, truncated, info = env.step(GOOD)
    assert (terminated, truncated) == (True, False)
    entries = named(env, observation)
    assert (entries["judged"], entries["correct"], entries["turn"], entries["turns_left"]) == (1, 1, 1, 0)
    assert entries["reward"] == pytest.approx(reward)
    assert entries["log2_speedup"] == pytest.approx(math.log2(info["speedup"]), rel=1e-5)
    assert entries["roofline_fraction"] == pytest.approx(info["roofline_fraction"])
    assert info["text"].startswith("Verdict: correct")


def test_what_is_not_known_is_zero(make_env: Any) -> None:
    env = NumericObservation(make_env())
    env.reset()
    observation, *_, info = env.step(BAD)
    assert math.isnan(info["speedup"])
    entries = named(env, observation)
    assert entries["judged"] == 1.0
    assert [entries[name] for name in ("correct", "reward", "log2_speedup", "roofline_fraction")] == [0.0] * 4


def test_turns_come_from_the_repair_budget(make_env: Any) -> None:
    env = NumericObservation(RepairBudget(make_env(), turns=3))
    turns = [named(env, env.reset()[0]), named(env, env.step(BAD)[0]), named(env, env.step(BAD)[0])]
    assert [(entries["turn"], entries["turns_left"]) for entries in turns] == [(0, 3), (1, 2), (2, 1)]


def test_infos_have_the_same_keys_and_types(make_env: Any) -> None:
    env = NumericObservation(make_env())
    infos = [env.reset()[1], env.step(BAD)[4]]
    assert len({tuple((key, type(value)) for key, value in info.items()) for info in infos}) == 1


def test_check_env_finds_nothing(make_env: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Said of every wrapped environment, whatever the wrapper does.
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version.*")
        check_env(NumericObservation(make_env()))


def test_the_spec_survives_json(make_env: Any) -> None:
    env = NumericObservation(make_env())
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, NumericObservation)
    assert again.spec == env.spec
    again.close()


def test_only_text_environments_are_wrapped(make_env: Any) -> None:
    for env in (gymnasium.make("CartPole-v1"), NumericObservation(make_env())):
        with pytest.raises(ConfigurationError, match="observations are text"):
            NumericObservation(env)
