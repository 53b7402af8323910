"""``KernelEnv`` as Gymnasium sees it, with the real evaluator on the CPU."""

from __future__ import annotations

import copy
import gc
import json
import math
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, get_type_hints

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import CustomSpaceError, ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from gym_kernel import ConfigurationError, KernelEnv, TaskError
from gym_kernel.envs.info import KernelInfo
from gym_kernel.tasks import load

pytestmark = pytest.mark.usefixtures("warm_evaluator")

GOOD = (Path(__file__).parents[1] / "examples" / "kernels" / "relu.py").read_text(encoding="utf-8")
NO_MODEL = "x = 1"


def _typed(info: dict[str, Any]) -> bool:
    return {key: type(value) for key, value in info.items()} == get_type_hints(KernelInfo)


def test_check_env_finds_nothing(make_env: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make_env(tasks="pilot").unwrapped)


def test_an_episode_is_one_submission(make_env: Any) -> None:
    env = make_env()
    prompt, info = env.reset(seed=0)
    assert "class ModelNew" in prompt
    assert _typed(info)
    assert (info["status"], info["correct"], info["device"]) == ("", False, "cpu")
    feedback, reward, terminated, truncated, info = env.step(
        f"Here you are.\n\n```python\n{GOOD}\n```\nDone."
    )
    assert (info["status"], terminated, truncated) == ("correct", True, False), feedback
    assert 0.3 < reward <= 3.0
    assert reward == info["reward"] == pytest.approx(0.3 + 2.7 * info["roofline_fraction"])
    assert info["runtime_us"] > 0
    assert _typed(info)
    assert feedback.startswith("Verdict: correct.")
    assert feedback in env.observation_space


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t\n",
        "\x00",
        "\ud800",
        "caf\u00e9 \U0001f600",
        "\x1b[2J\x07",
        "a" * 1_000_000,
        "```python\n```",
        "```",
        "\r\n" * 1_000,
        "(" * 10_000,
        "\u2028class ModelNew: pass",
        NO_MODEL,
    ],
    ids=repr,
)
def test_any_text_is_answered_and_junk_earns_nothing(make_env: Any, text: str) -> None:
    env = make_env()
    env.reset()
    observation, reward, terminated, truncated, info = env.step(text)
    assert (info["status"], reward, terminated, truncated) == ("rejected", 0.0, True, False)
    assert observation in env.observation_space
    assert _typed(info)


def test_text_of_a_megabyte_round_short_code_is_judged_by_its_code(make_env: Any) -> None:
    env = make_env()
    env.reset()
    *_, info = env.step("hmm " * 300_000 + f"\n```python\n{GOOD}\n```")
    assert info["status"] == "correct"


def test_code_that_is_too_long_is_rejected_with_both_numbers(make_env: Any) -> None:
    env = make_env(max_code_chars=100)
    env.reset()
    observation, *_, info = env.step("x" * 101)
    assert info["status"] == "rejected"
    assert "101 characters" in observation
    assert "at most 100" in observation


@pytest.mark.parametrize("action", [None, 3, b"text", ["text"], ("a", "b")])
def test_an_action_that_is_no_text_is_a_mistake_of_the_programmer(make_env: Any, action: Any) -> None:
    env = make_env()
    env.reset()
    with pytest.raises(ConfigurationError, match="An action is a str"):
        env.step(action)
    *_, info = env.step(NO_MODEL)
    assert info["status"] == "rejected"


def test_stepping_needs_an_open_episode() -> None:
    env = KernelEnv(tasks="relu", device="cpu")
    with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
        env.step(NO_MODEL)
    env.reset()
    env.step(NO_MODEL)
    with pytest.raises(ResetNeeded, match="RepairBudget"):
        env.step(NO_MODEL)
    env.close()


def test_an_episode_can_be_continued_only_where_there_is_one() -> None:
    env = KernelEnv(tasks="relu", device="cpu")
    with pytest.raises(ResetNeeded):
        env.continue_episode()
    env.reset()
    env.step(NO_MODEL)
    env.continue_episode()
    assert env.step(NO_MODEL)[2] is True
    env.close()
    with pytest.raises(ResetNeeded):
        env.continue_episode()


def test_the_seed_draws_the_task(make_env: Any) -> None:
    env = make_env(tasks="pilot/train")
    drawn = [env.reset(seed=seed)[1]["task"] for seed in range(12)]
    assert drawn == [env.reset(seed=seed)[1]["task"] for seed in range(12)]
    assert len(set(drawn)) == 4
    env.reset(seed=5)
    later = [env.reset()[1]["task"] for _ in range(8)]
    env.reset(seed=5)
    assert later == [env.reset()[1]["task"] for _ in range(8)]
    assert len(set(later)) > 1


def test_options_name_the_task(make_env: Any) -> None:
    env = make_env(tasks="pilot/train")
    assert env.reset(options={"task": "tanh"})[1]["task"] == "tanh"
    with pytest.raises(TaskError, match="no task 'softmax'"):
        env.reset(options={"task": "softmax"})
    with pytest.raises(ConfigurationError, match="does not know the option 'tsk'"):
        env.reset(options={"tsk": "tanh"})


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        ({"tasks": "nonsense"}, TaskError),
        ({"tasks": []}, TaskError),
        ({"device": "tpu"}, ConfigurationError),
        ({"isolation": "nonsense"}, ConfigurationError),
        ({"timeout_s": 0.0}, ConfigurationError),
        ({"evaluation_seed": -1}, ConfigurationError),
        ({"max_code_chars": 0}, ConfigurationError),
        ({"max_code_chars": 1 << 21}, ConfigurationError),
        ({"max_code_chars": True}, ConfigurationError),
        ({"max_observation_chars": 100}, ConfigurationError),
        ({"max_observation_chars": 2e4}, ConfigurationError),
        ({"render_mode": "human"}, ConfigurationError),
    ],
    ids=str,
)
def test_arguments_are_checked_when_the_environment_is_made(
    kwargs: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        KernelEnv(**kwargs)


def test_task_objects_are_tasks_too() -> None:
    env = KernelEnv(tasks=[load("relu")[0], "tanh"], device="cpu")
    assert env.task_ids == ("relu", "tanh")


def test_the_spec_survives_json(make_env: Any) -> None:
    env = make_env(tasks=["relu", "tanh"], timeout_s=60.0)
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.spec == env.spec
    assert again.unwrapped.task_ids == ("relu", "tanh")
    again.close()


def test_close_twice_and_reset_again() -> None:
    env = KernelEnv(tasks="relu", device="cpu")
    env.close()
    env.reset()
    env.close()
    env.close()
    assert env.reset()[1]["task"] == "relu"
    env.close()


def test_copies_and_pickles_are_environments_of_their_own() -> None:
    env = KernelEnv(tasks="pilot/train", device="cpu")
    env.reset(seed=3)
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert twin.action_space == env.action_space
        assert twin.step(NO_MODEL)[4]["status"] == "rejected"
        twin.close()
    assert env.step(NO_MODEL)[4]["status"] == "rejected"
    env.close()


def test_a_dropped_environment_lets_go_of_the_evaluator() -> None:
    env = KernelEnv(tasks="relu", device="cpu")
    env.reset()
    evaluator = env._evaluator
    assert evaluator is not None
    assert evaluator._host is not None
    del env
    gc.collect()
    assert evaluator._host is None


def test_render_shows_the_conversation_and_nothing_that_moves_a_cursor(make_env: Any) -> None:
    env = make_env(render_mode="ansi")
    prompt, _ = env.reset()
    assert env.render() == f"=== prompt ===\n{prompt}\n"
    feedback, *_ = env.step("\x1b[2J = 1")
    text = env.render()
    assert "\x1b" not in text
    assert text.endswith(f"=== feedback 1 ===\n{feedback}\n")
    assert "=== submission 1 ===" in text


def test_rendering_needs_a_mode_and_an_episode() -> None:
    env = KernelEnv(tasks="relu", device="cpu", render_mode="ansi")
    with pytest.raises(ResetNeeded):
        env.render()
    with pytest.warns(UserWarning, match="render_mode="):
        assert KernelEnv(tasks="relu", device="cpu").render() is None


def test_a_short_observation_keeps_head_and_tail(make_env: Any) -> None:
    env = make_env(max_observation_chars=1_024)
    prompt, _ = env.reset()
    assert len(prompt) == 1_024
    assert "characters left out" in prompt
    assert prompt.startswith("# Task: ")
    assert prompt.endswith("Only the last fenced block counts.")


def test_environments_batch_in_a_vector() -> None:
    envs = SyncVectorEnv([lambda: gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu")] * 2)
    observations, infos = envs.reset(seed=[1, 2])
    assert all(isinstance(observation, str) for observation in observations)
    assert infos["t_min_us"].dtype == float
    _, rewards, terminated, _, infos = envs.step((GOOD, NO_MODEL))
    assert list(infos["status"]) == ["correct", "rejected"]
    assert list(infos["correct"]) == [True, False]
    assert rewards[0] > 0.3
    assert rewards[1] == 0.0
    assert math.isnan(infos["runtime_us"][1])
    assert terminated.all()
    envs.close()


def test_async_with_shared_memory_is_refused_with_a_way_out() -> None:
    make = lambda: KernelEnv(tasks="relu", device="cpu")
    with pytest.raises(ValueError, match="shared_memory=False") as caught:
        AsyncVectorEnv([make, make])
    assert isinstance(caught.value.__cause__, CustomSpaceError)
    assert "make_vec" in str(caught.value.__cause__)


@pytest.mark.slow
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_async_without_shared_memory_works(context: str) -> None:
    envs = AsyncVectorEnv([_make_relu, _make_relu], shared_memory=False, context=context)
    observations, _ = envs.reset()
    assert all("class ModelNew" in observation for observation in observations)
    *_, infos = envs.step((GOOD, NO_MODEL))
    assert list(infos["status"]) == ["correct", "rejected"]
    envs.close()


def _make_relu() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu")


HOST_IS_KILLED = """
import json, os, signal, threading, time
from gym_kernel import KernelEnv
from gym_kernel.wrappers import RepairBudget

env = RepairBudget(KernelEnv(tasks="relu", device="cpu"))
env.reset()
done = threading.Event()

def kill_every_child():
    while not done.wait(0.02):
        for task in os.listdir("/proc/self/task"):
            try:
                children = open(f"/proc/self/task/{task}/children").read().split()
            except FileNotFoundError:
                continue
            for pid in children:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass

threading.Thread(target=kill_every_child).start()
time.sleep(0.1)
try:
    observation, reward, terminated, truncated, info = env.step(open("examples/kernels/relu.py").read())
finally:
    done.set()
try:
    env.step("x = 1")
    again = "stepped"
except Exception as error:
    again = type(error).__name__
print(json.dumps([observation, reward, terminated, truncated, info["status"], info["turns_left"], again]))
env.close()
"""


def test_a_lost_evaluator_truncates_and_blames_nobody() -> None:
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", HOST_IS_KILLED],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=root,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    observation, *rest = json.loads(done.stdout.splitlines()[-1])
    assert rest == [0.0, False, True, "infrastructure_error", 0, "ResetNeeded"]
    assert "the evaluator failed, not your submission" in observation
