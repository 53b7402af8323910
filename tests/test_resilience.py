"""Mishaps of the machine and slips of the user: clear errors early, and never a wait without an end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from gym_kernel.errors import ConfigurationError, TaskError
from gym_kernel.evaluator.client import EvaluatorConfig
from gym_kernel.evaluator.processes import children_of
from gym_kernel.tasks import Task

ROOT = Path(__file__).parents[1]
HONEST = (ROOT / "examples" / "kernels" / "relu.py").read_text()


def make(**kwargs: object) -> gymnasium.Env:
    return gymnasium.make("gym_kernel:KernelEnv-v0", **{"tasks": "relu", "device": "cpu", **kwargs})


def host_and_judge() -> tuple[int, int]:
    # Other tests may have left this process children of other kinds, multiprocessing's resource tracker for one.
    (host,) = [
        pid for pid in children_of(os.getpid()) if b"gym_kernel" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    # The judge is the first that a host forks.
    return host, min(children_of(host))


@pytest.mark.own_host
def test_a_judge_that_dies_under_queued_requests_is_replaced() -> None:
    envs = [make() for _ in range(3)]
    try:
        for env in envs:
            env.reset()
        host, judge = host_and_judge()
        os.kill(host, signal.SIGSTOP)
        with ThreadPoolExecutor(len(envs)) as pool:
            steps = [pool.submit(env.step, HONEST) for env in envs]
            time.sleep(0.1)
            os.kill(judge, signal.SIGKILL)
            os.kill(host, signal.SIGCONT)
            infos = [step.result(60)[4] for step in steps]
        assert [info["status"] for info in infos] == ["correct"] * len(envs)
    finally:
        for env in envs:
            env.close()


@pytest.mark.own_host
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.slow)])
def test_a_worker_that_is_lost_before_it_has_a_submission_is_nobodys_fault(number: signal.Signals) -> None:
    env = make()
    try:
        for _ in range(3):
            env.reset()
            env.step(HONEST)
            time.sleep(0.5)
            host, judge = host_and_judge()
            for supervisor in set(children_of(host)) - {judge}:
                for pid in (supervisor, *children_of(supervisor)):
                    os.kill(pid, number)
            env.reset()
            feedback, _, _, _, info = env.step(HONEST)
            assert info["status"] == "correct", feedback
    finally:
        env.close()


@pytest.mark.own_host
@pytest.mark.slow
def test_a_judge_that_is_stopped_is_replaced() -> None:
    env = make()
    try:
        env.reset()
        _, judge = host_and_judge()
        os.kill(judge, signal.SIGSTOP)
        _, _, _, _, info = env.step(HONEST)
        assert info["status"] == "correct"
    finally:
        env.close()


@pytest.mark.own_host
@pytest.mark.slow
def test_a_host_that_is_stopped_is_replaced() -> None:
    env = make()
    try:
        env.reset()
        host, _ = host_and_judge()
        os.kill(host, signal.SIGSTOP)
        _, _, _, _, info = env.step(HONEST)
        assert info["status"] == "correct"
    finally:
        env.close()


@pytest.mark.own_host
def test_a_child_forked_while_the_host_starts_can_exit_and_play() -> None:
    env = make()
    starting = threading.Thread(target=env.reset)
    starting.start()
    time.sleep(0.5)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            env.reset()
            env.close()
            status = 0
        finally:
            os._exit(status)
    deadline = time.monotonic() + 60
    done = (0, 0)
    while done == (0, 0) and time.monotonic() < deadline:
        done = os.waitpid(child, os.WNOHANG)
        time.sleep(0.05)
    if done == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    starting.join()
    env.close()
    assert done == (child, 0)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"timeout_s": "5"},
        {"timeout_s": None},
        {"timeout_s": True},
        {"timeout_s": float("nan")},
        {"evaluation_seed": 1.5},
        {"evaluation_seed": "1"},
        {"evaluation_seed": True},
        {"record_dir": 5},
        {"record_dir": b"abc"},
        {"record_dir": "a\0b"},
        {"record_dir": "r\udcff"},
        {"record_dir": ""},
        {"device": None},
        {"device": "cudax"},
        {"device": "cuda:-1"},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_when_the_env_is_made(kwargs: dict) -> None:
    with pytest.raises(ConfigurationError):
        make(**kwargs)


def test_numbers_of_numpy_are_welcome() -> None:
    config = EvaluatorConfig(timeout_s=np.float32(30), evaluation_seed=np.int64(3))
    assert (config.timeout_s, config.evaluation_seed) == (30.0, 3)
    assert type(config.evaluation_seed) is int


def test_a_record_that_cannot_be_kept_is_refused_at_reset(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    env = make(record_dir=str(tmp_path / "file" / "below"))
    with pytest.raises(ConfigurationError, match="cannot be written"):
        env.reset()
    env.close()


def test_options_must_be_a_dict() -> None:
    env = make()
    with pytest.raises(ConfigurationError, match="options must be a dict"):
        env.reset(options=[1])  # type: ignore[arg-type]
    env.close()


def test_a_cache_that_cannot_be_written_is_done_without() -> None:
    code = (
        "import gymnasium; env = gymnasium.make('gym_kernel:KernelEnv-v0', tasks='relu', device='cpu'); "
        "env.reset(); print(env.step('')[4]['status']); env.close()"
    )
    environment = {**os.environ, "GYM_KERNEL_CACHE": "/dev/null/cache", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.stdout.strip() == "rejected", done.stderr


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (HONEST.replace("x = x.contiguous()", "raise ValueError('\\ud800')"), "runtime_error"),
        ("raise ValueError('\\ud800')\n" + HONEST, "runtime_error"),
        ("# coding: foo\n" + HONEST, "rejected"),
        ("# coding: utf-7\n" + HONEST, "rejected"),
        ("# coding: utf-8\n" + HONEST, "correct"),
        ("\ufeff" + HONEST, "correct"),
    ],
    ids=["surrogate in forward", "surrogate at import", "no such coding", "other coding", "utf-8", "mark"],
)
def test_odd_texts_get_the_right_status(warm_evaluator: None, reply: str, status: str) -> None:
    env = make()
    try:
        env.reset()
        feedback, _, _, _, info = env.step(reply)
        assert info["status"] == status, feedback
        assert "worker_pool" not in feedback
    finally:
        env.close()


@pytest.mark.parametrize("place", ["module", "get_inputs", "forward"])
@pytest.mark.parametrize("ending", ["SystemExit(0)", "KeyboardInterrupt"])
def test_a_reference_that_ends_its_process_is_a_task_error(place: str, ending: str) -> None:
    places = {"module": "", "get_inputs": "", "forward": "pass", place: f"raise {ending}"}
    source = f"""
import torch
{places["module"]}
class Model(torch.nn.Module):
    def forward(self, x):
        {places["forward"]}
        return x * 2
def get_inputs():
    {places["get_inputs"]}
    return [torch.rand(8, 8)]
def get_init_inputs():
    return []
"""
    env = gymnasium.make(
        "gym_kernel:KernelEnv-v0",
        tasks=Task(id="ends", suite="mine", title="Ends", source=source),
        device="cpu",
    )
    try:
        with pytest.raises(TaskError, match=ending.removesuffix("(0)")):
            env.reset()
    finally:
        env.close()
