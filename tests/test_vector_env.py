"""``KernelVectorEnv``: concurrent steps, groups, the three autoreset modes, and Gymnasium's own vectorisation."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import CustomSpaceError, ResetNeeded
from gymnasium.vector import AutoresetMode
from small_tasks import with_rows

from gym_kernel import ConfigurationError, KernelVectorEnv, TaskError
from gym_kernel.evaluator.processes import descendants_of
from gym_kernel.wrappers import NumericObservation, TemplateAction

pytestmark = pytest.mark.usefixtures("warm_evaluator")

KERNELS = Path(__file__).parents[1] / "examples" / "kernels"
RELU = (KERNELS / "relu.py").read_text()
TASKS = ["relu", "sigmoid", "tanh", "swish"]
MODEL = "import torch\n{head}\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        {body}\n"
WORDS = "no code at all"
KILLED = MODEL.format(head="import os, signal", body="os.kill(os.getpid(), signal.SIGKILL)")
SLOW = "import time\ntime.sleep({seconds})\n" + RELU


@pytest.fixture
def make() -> Iterator[Any]:
    made: list[KernelVectorEnv] = []

    def make_one(num_envs: int, **kwargs: Any) -> KernelVectorEnv:
        made.append(KernelVectorEnv(num_envs, device="cpu", timeout_s=30.0, **kwargs))
        return made[-1]

    yield make_one
    for envs in made:
        envs.close()


def test_make_vec_uses_it() -> None:
    envs = gymnasium.make_vec("gym_kernel:KernelEnv-v0", num_envs=3, tasks="pilot", device="cpu", turns=2)
    try:
        assert isinstance(envs, KernelVectorEnv)
        assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        assert envs.spec is not None
        again = gymnasium.make_vec(envs.spec)
        assert isinstance(again, KernelVectorEnv)
        assert again.num_envs == 3
        again.close()
    finally:
        envs.close()


def test_eight_envs_give_the_statuses_of_eight_single_ones(make: Any) -> None:
    tasks = TASKS * 2
    replies = [(KERNELS / f"{task}.py").read_text() for task in TASKS] + [
        WORDS, "def broken(:", KILLED, MODEL.format(head="", body="return torch.relu(x)"),
    ]  # fmt: skip
    envs = make(8)
    _, infos = envs.reset(seed=0, options={"tasks": tasks})
    assert list(infos["task"]) == tasks
    _, rewards, terminations, truncations, infos = envs.step(replies)
    together = [info["status"] for info in unbatched(infos["final_info"], 8)]
    alone = []
    env = gymnasium.make("gym_kernel:KernelEnv-v0", device="cpu", timeout_s=30.0)
    for task, reply in zip(tasks, replies, strict=True):
        env.reset(options={"task": task})
        alone.append(env.step(reply)[4]["status"])
    env.close()
    assert together == alone
    assert together[:4] == ["correct"] * 4
    assert len(set(together)) >= 4
    assert terminations.all()
    assert not truncations.any()
    assert [reward > 0 for reward in rewards] == [status == "correct" for status in together]
    assert rewards.dtype == np.float64


def test_the_seed_draws_as_in_single_envs(make: Any) -> None:
    envs = make(4)
    _, infos = envs.reset(seed=7)
    singles = []
    env = gymnasium.make("gym_kernel:KernelEnv-v0", device="cpu")
    for position in range(4):
        singles.append(env.reset(seed=7 + position)[1]["task"])
    env.close()
    assert list(infos["task"]) == singles
    assert list(envs.reset(seed=[3, None, 5, 3])[1]["task"])[::3] == [envs.reset(seed=3)[1]["task"][0]] * 2


def test_slow_loads_overlap(make: Any) -> None:
    envs = make(2, tasks="relu", turns=3)
    envs.reset(seed=0)
    envs.step([RELU, RELU])

    def wall_s(replies: list[str]) -> float:
        started = time.monotonic()
        envs.step(replies)
        return time.monotonic() - started

    one_s = wall_s([SLOW.format(seconds=2), WORDS])
    both_s = wall_s([SLOW.format(seconds=2), SLOW.format(seconds=2.01)])
    assert both_s < 1.6 * one_s


@pytest.mark.own_host
def test_eight_slow_loads_take_hardly_longer_than_one_where_there_are_slots(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GYM_KERNEL_COMPILE_SLOTS", "8")
    envs = make(8, tasks=with_rows("relu", 8), turns=5)
    envs.reset(seed=0)
    envs.step([RELU, *[WORDS] * 7])

    def wall_s(replies: list[str]) -> float:
        started = time.monotonic()
        statuses = envs.step(replies)[4]["status"]
        assert list(statuses).count("correct") == sum(reply != WORDS for reply in replies)
        return time.monotonic() - started

    checks_s = wall_s([RELU] * 8)
    one_s = wall_s([SLOW.format(seconds=3), *[WORDS] * 7])
    all_s = wall_s([SLOW.format(seconds=3 + 0.01 * position) for position in range(8)])
    # What is left beside the loading is the checks, one after the other.
    assert all_s - checks_s < 1.5 * one_s


@pytest.mark.own_host
def test_a_number_of_slots_that_is_none_is_refused(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYM_KERNEL_COMPILE_SLOTS", "all")
    with pytest.raises(
        ConfigurationError, match="GYM_KERNEL_COMPILE_SLOTS='all' must be a positive whole number"
    ):
        make(2, tasks="relu").reset(seed=0)


def test_a_group_shares_its_tasks_for_as_long_as_it_lives(make: Any) -> None:
    envs = make(6, groups=3)
    seen = set()
    for seed in (None, 5, None):
        _, infos = envs.reset(seed=seed)
        for _ in range(4):
            tasks = list(infos["task"])
            assert tasks == [tasks[0]] * 3 + [tasks[3]] * 3
            seen.add((tasks[0], tasks[3]))
            _, _, _, _, infos = envs.step([WORDS] * 6)
    assert len(seen) > 3
    assert list(envs.reset(options={"tasks": ["relu", "tanh"]})[1]["task"]) == ["relu"] * 3 + ["tanh"] * 3
    tasks = list(envs.step([WORDS] * 6)[4]["task"])
    assert tasks == [tasks[0]] * 3 + [tasks[3]] * 3


def test_groups_are_checked(make: Any) -> None:
    with pytest.raises(ConfigurationError, match="pass num_envs=9"):
        make(7, groups=3)
    envs = make(4, groups=2, autoreset_mode="Disabled")
    envs.reset(seed=0)
    with pytest.raises(ConfigurationError, match="different tasks"):
        envs.reset(options={"tasks": ["relu", "tanh", "relu", "relu"]})
    mask = np.array([True, False, False, False])
    with pytest.raises(ConfigurationError, match="cuts a group"):
        envs.reset(options={"reset_mask": mask})
    envs.reset(options={"reset_mask": mask, "task": "relu"})


def test_same_step_loses_no_completion(make: Any) -> None:
    envs = make(2, tasks="relu", turns=2)
    envs.reset(seed=0)
    statuses: list[list[str]] = [[], []]
    for step in range(6):
        replies = [RELU + f"\n# {step}", WORDS]
        observations, _, terminations, _, infos = envs.step(replies)
        over = step % 2 == 1
        assert terminations.tolist() == [over, over]
        assert ("final_obs" in infos) == over
        each = unbatched(infos["final_info"] if over else infos, 2)
        for position, info in enumerate(each):
            statuses[position].append(info["status"])
            assert info["turn"] == step % 2 + 1
        if over:
            assert all("episode is over" in text for text in infos["final_obs"])
            assert all("You have 2 submissions" in text for text in observations)
            assert list(infos["status"]) == ["", ""]
    assert statuses == [["correct"] * 6, ["rejected"] * 6]


def test_next_step_spends_one_action_on_the_reset(make: Any) -> None:
    envs = make(2, tasks="relu", turns=2, autoreset_mode=AutoresetMode.NEXT_STEP)
    envs.reset(seed=0)
    seen = []
    for _ in range(6):
        observations, rewards, terminations, _, infos = envs.step([WORDS, WORDS])
        seen.append((infos["status"][0], bool(terminations[0])))
        assert "final_obs" not in infos
        if infos["status"][0] == "":
            assert rewards.tolist() == [0.0, 0.0]
            assert "You have 2 submissions" in observations[0]
    assert seen == [("rejected", False), ("rejected", True), ("", False)] * 2


def test_disabled_leaves_the_reset_to_the_caller(make: Any) -> None:
    envs = make(2, tasks=["relu", "tanh"], turns=2, autoreset_mode="Disabled", wrappers=(StopAtCorrect,))
    envs.reset(options={"task": "relu"})
    observations, _, terminations, truncations, _ = envs.step([RELU, WORDS])
    assert terminations.tolist() == [True, False]
    with pytest.raises(ResetNeeded, match="reset_mask"):
        envs.step([WORDS, WORDS])
    options = {"reset_mask": terminations | truncations, "tasks": ["tanh", "relu"]}
    again, infos = envs.reset(options=options)
    assert set(options) == {"reset_mask", "tasks"}
    assert infos["_task"].tolist() == [True, False]
    assert infos["task"][0] == "tanh"
    assert again[1] == observations[1]
    _, _, terminations, _, infos = envs.step([WORDS, WORDS])
    assert terminations.tolist() == [False, True]
    assert list(infos["turn"]) == [1, 2]


def test_a_worker_that_dies_leaves_the_others_alone(make: Any) -> None:
    envs = make(3, tasks="relu", turns=2)
    envs.reset(seed=0)
    _, rewards, _, truncations, infos = envs.step([RELU, KILLED, RELU + "\n# other"])
    assert list(infos["status"]) == ["correct", "crashed", "correct"]
    assert not truncations.any()
    assert (rewards > 0).tolist() == [True, False, True]
    assert list(envs.step([RELU] * 3)[4]["final_info"]["status"]) == ["correct"] * 3


def test_a_failed_reset_does_not_cost_the_step_before_it(make: Any) -> None:
    envs = make(2, tasks="relu", wrappers=(FailsAtTheThirdReset,))
    envs.reset(seed=0)
    envs.step([WORDS, WORDS])
    _, rewards, _, _, infos = envs.step([RELU, RELU + "\n# other"])
    assert list(infos["final_info"]["status"]) == ["correct", "correct"]
    assert (rewards > 0).all()
    with pytest.raises(RuntimeError, match="third reset"):
        envs.step([WORDS, WORDS])
    envs.reset(seed=1)
    envs.step([WORDS, WORDS])


def test_bad_arguments_are_named(make: Any) -> None:
    for arguments in (
        {"num_envs": 0},
        {"num_envs": 2, "autoreset_mode": "whenever"},
        {"num_envs": 2, "device": []},
        {"num_envs": 2, "groups": 0},
    ):
        with pytest.raises(ConfigurationError):
            KernelVectorEnv(**{"device": "cpu", **arguments})
    envs = make(2)
    with pytest.raises(ResetNeeded):
        envs.step([WORDS, WORDS])
    for options in (
        {"tasks": ["relu"]},
        {"tasks": "relu"},
        {"tasks": ["relu"] * 3},
        {"tasks": ["relu"] * 2, "task": "relu"},
        {"reset_mask": [True, False]},
        {"reset_mask": np.zeros(2, dtype=bool)},
        {"groups": 2},
    ):
        with pytest.raises(ConfigurationError):
            envs.reset(options=options)
    with pytest.raises(ConfigurationError):
        envs.reset(seed=[1, 2, 3])
    with pytest.raises(TaskError):
        envs.reset(options={"tasks": ["relu", "unknown"]})
    with pytest.raises(ResetNeeded):
        envs.step([WORDS, WORDS])
    envs.reset(seed=0)
    for actions in ("ab", [WORDS], [WORDS] * 3):
        with pytest.raises(ConfigurationError, match="2 replies"):
            envs.step(actions)


@pytest.mark.own_host
def test_close_can_be_followed_by_reset_and_close(make: Any) -> None:
    envs = make(1, tasks="relu")
    before = set(descendants_of(os.getpid()))
    for _ in range(2):
        envs.reset()
        assert set(descendants_of(os.getpid())) - before
        envs.close()
        deadline = time.monotonic() + 10
        while set(descendants_of(os.getpid())) - before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not set(descendants_of(os.getpid())) - before


def test_a_bad_action_costs_nobody_a_turn(make: Any) -> None:
    envs = make(2, tasks="relu", turns=2)
    envs.reset(seed=0)
    for actions in ([WORDS, None], None, 5, {WORDS, "b"}, {0: WORDS, 1: WORDS}, iter([WORDS, WORDS])):
        with pytest.raises(ConfigurationError):
            envs.step(actions)
    assert list(envs.step([WORDS, WORDS])[4]["turn"]) == [1, 1]


@pytest.mark.parametrize("seed", [7, np.int64(7), [7, 8], np.array([7, 8])], ids=str)
def test_any_seed_makes_later_draws_of_groups_repeatable(make: Any, seed: Any) -> None:
    def draws() -> list[list[str]]:
        envs = make(4, groups=2)
        envs.reset(seed=seed)
        return [list(envs.reset()[1]["task"]) for _ in range(3)]

    assert draws() == draws()


def test_a_named_reset_of_one_member_leaves_the_group_in_step(make: Any) -> None:
    envs = make(2, groups=2, autoreset_mode="Disabled")
    envs.reset(seed=3)
    envs.step([WORDS] * 2)
    mask = np.array([True, False])
    envs.reset(options={"reset_mask": mask, "task": "relu"})
    envs.reset(options={"reset_mask": ~mask, "task": "relu"})
    envs.step([WORDS] * 2)
    tasks = [list(envs.reset()[1]["task"]) for _ in range(3)]
    assert all(first == second for first, second in tasks)


def test_numeric_observations_are_arrays(make: Any) -> None:
    envs = make(2, tasks=with_rows("relu", 8), wrappers=(TemplateAction, NumericObservation))
    observations, _ = envs.reset(seed=0)
    assert observations.shape == envs.observation_space.shape
    assert observations in envs.observation_space
    first, *_ = envs.step(envs.action_space.sample())
    assert first.shape == observations.shape
    assert first is not observations


def test_a_copy_plays_on_its_own(make: Any) -> None:
    envs = make(1, tasks="relu")
    envs.reset(seed=0)
    again = pickle.loads(pickle.dumps(envs))
    again.reset(seed=0)
    assert list(again.step([WORDS])[4]["final_info"]["status"]) == ["rejected"]
    again.close()


def test_attributes_pass_through(make: Any) -> None:
    envs = make(2, tasks="relu", turns=2, render_mode="ansi")
    assert envs.get_attr("task_ids") == (("relu",), ("relu",))
    envs.reset(seed=0)
    assert all("relu" in text.lower() for text in envs.render())
    envs.set_attr("nickname", ["a", "b"])
    assert envs.get_attr("nickname") == ("a", "b")
    with pytest.raises(ConfigurationError):
        envs.set_attr("nickname", ["a"])
    envs.close()
    envs.close()


def test_gymnasiums_own_vectorisation_agrees() -> None:
    statuses = {}
    for mode, vector_kwargs in (("sync", {}), ("async", {"shared_memory": False})):
        envs = gymnasium.make_vec(
            "gym_kernel:KernelEnv-v0",
            num_envs=2,
            vectorization_mode=mode,
            vector_kwargs={**vector_kwargs, "autoreset_mode": AutoresetMode.SAME_STEP},
            tasks="relu",
            device="cpu",
        )
        try:
            prompts, _ = envs.reset(seed=0)
            assert all("ModelNew" in prompt for prompt in prompts)
            _, _, terminations, _, infos = envs.step((RELU, WORDS))
            assert terminations.all()
            statuses[mode] = list(infos["final_info"]["status"])
        finally:
            envs.close()
    assert statuses == {"sync": ["correct", "rejected"], "async": ["correct", "rejected"]}


def test_shared_memory_is_refused_with_a_way_out() -> None:
    with pytest.raises(ValueError, match="shared_memory=False") as caught:
        gymnasium.make_vec(
            "gym_kernel:KernelEnv-v0", num_envs=2, vectorization_mode="async", tasks="relu", device="cpu"
        )
    assert isinstance(caught.value.__cause__, CustomSpaceError)
    assert "make_vec" in str(caught.value.__cause__)


def test_an_interrupt_ends_the_process_and_leaves_nothing() -> None:
    program = f"""
import gym_kernel
envs = gym_kernel.KernelVectorEnv(2, tasks="relu", device="cpu", timeout_s=60.0)
envs.reset(seed=0)
print("ready", flush=True)
envs.step([{SLOW.format(seconds=50)!r}] * 2)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(1.0)
        family = descendants_of(child.pid)
        assert family
        child.send_signal(signal.SIGINT)
        child.wait(10)
        deadline = time.monotonic() + 5
        while any(os.path.exists(f"/proc/{pid}") for pid in family) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not [pid for pid in family if os.path.exists(f"/proc/{pid}")]
    finally:
        child.kill()
        child.wait()


class StopAtCorrect(gymnasium.Wrapper[str, str, str, str]):
    """Ends an episode early, so that environments fall out of step."""

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated or info["correct"], truncated, info


class FailsAtTheThirdReset(gymnasium.Wrapper[str, str, str, str]):
    """A wrapper of somebody's that raises."""

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        super().__init__(env)
        self.resets = 0

    def reset(self, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        self.resets += 1
        if self.resets == 3:
            raise RuntimeError("the third reset")
        return self.env.reset(**kwargs)


def unbatched(infos: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """One info for each environment."""
    return [{key: values[position] for key, values in infos.items()} for position in range(count)]
