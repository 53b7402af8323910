"""Processes and files: nothing outlives its owner, whenever and however that goes."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import gymnasium
import pytest

from gym_kernel.evaluator.processes import children_of, descendants_of, process_is_alive

pytestmark = pytest.mark.own_host

ROOT = Path(__file__).parents[1]

CALLER = """
import sys, gymnasium
from pathlib import Path
env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu", timeout_s=100.0)
print("made", flush=True)
env.reset(seed=0)
print("reset", flush=True)
env.step(Path(sys.argv[1]).read_text())
print("stepped", flush=True)
"""

HEAD = "import torch, time, subprocess, os\n"
MODEL = "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        {}\n"

STAGES = {
    # What the submission does, and the line of the caller after which it is killed.
    "starting": ("made", HEAD + MODEL.format("return x")),
    "importing": ("reset", HEAD + "time.sleep(90)\n" + MODEL.format("return x")),
    "in a subprocess": ("reset", HEAD + "subprocess.run(['sleep', '90'])\n" + MODEL.format("return x")),
    "with a daemon": (
        "reset",
        HEAD + "subprocess.Popen(['sleep', '90'], start_new_session=True)\n" + MODEL.format("time.sleep(90)"),
    ),
    "compiling C++": ("reset", (ROOT / "examples/kernels/cpp/mingpt_gelu.py").read_text()),
    "in forward": ("reset", HEAD + MODEL.format("time.sleep(90)")),
    "timing": ("reset", (ROOT / "examples/kernels/relu.py").read_text()),
}


def wait_for_none(pids: set[int], limit_s: float) -> set[int]:
    """Wait until none of the processes lives; returns those that still do."""
    deadline = time.monotonic() + limit_s
    while alive := {pid for pid in pids if process_is_alive(pid)}:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return alive


def start_caller(tmp_path: Path, code: str) -> subprocess.Popen[str]:
    """Run an episode in a process of its own, with its own home and temporary folder."""
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "code.py").write_text(code)
    environment = {
        **os.environ,
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("XDG_CACHE_HOME", None)
    return subprocess.Popen(
        [sys.executable, "-c", CALLER, str(tmp_path / "code.py")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
    )


def wait_for_line(process: subprocess.Popen[str], line: str) -> None:
    """Read the caller's output up to a line."""
    assert process.stdout is not None
    for printed in process.stdout:
        if printed.strip() == line:
            return
    raise AssertionError(f"The caller ended before it printed {line!r}.")


def kill_caller(tmp_path: Path, stage: str) -> None:
    """Kill a caller in a stage of its submission, and look at what is left."""
    line, code = STAGES[stage]
    caller = start_caller(tmp_path, code)
    try:
        wait_for_line(caller, line)
        # Long enough to be inside the stage, short of its end.
        time.sleep(0.3 if stage in ("starting", "timing") else 1.5)
        if stage == "compiling C++":
            assert wait_for_compiler(caller.pid, limit_s=30.0)
        family = descendants_of(caller.pid)
        assert family
    finally:
        caller.send_signal(signal.SIGKILL)
        caller.wait()
    assert not wait_for_none(family, limit_s=5.0)
    assert list((tmp_path / "tmp").iterdir()) == []


def wait_for_compiler(pid: int, limit_s: float) -> bool:
    """Whether a compiler comes to run below a process."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        for each in descendants_of(pid):
            with contextlib.suppress(OSError):
                if "cc1plus" in Path(f"/proc/{each}/cmdline").read_text():
                    return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="module")
def killings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[None]]]:
    """Every stage, several at once: most of the time is spent on imports."""
    with ThreadPoolExecutor(3) as pool:
        yield {stage: pool.submit(kill_caller, tmp_path_factory.mktemp("caller"), stage) for stage in STAGES}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("stage", list(STAGES))
def test_killing_the_caller_leaves_no_process(killings: dict[str, Future[None]], stage: str) -> None:
    killings[stage].result(120)


def test_an_episode_leaves_only_the_documented_cache(tmp_path: Path) -> None:
    caller = start_caller(tmp_path, (ROOT / "examples/kernels/relu.py").read_text())
    wait_for_line(caller, "reset")
    family = descendants_of(caller.pid)
    assert caller.wait(60) == 0
    assert not wait_for_none(family, limit_s=5.0)
    assert list((tmp_path / "tmp").iterdir()) == []
    left = {
        str(path.relative_to(tmp_path / "home")) for path in (tmp_path / "home").rglob("*") if path.is_file()
    }
    assert all(name.startswith(".cache/gym-kernel/") for name in left), left


def test_close_twice_and_close_unused() -> None:
    unused = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu")
    unused.close()
    unused.close()
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu")
    env.reset(seed=0)
    family = descendants_of(os.getpid())
    assert family
    env.close()
    env.close()
    assert not wait_for_none(family, limit_s=5.0)


def test_dropped_env_leaves_nothing() -> None:
    before = descendants_of(os.getpid())
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu")
    env.reset(seed=0)
    family = descendants_of(os.getpid()) - before
    assert family
    del env
    gc.collect()
    assert not wait_for_none(family, limit_s=5.0)


def test_envs_share_one_host() -> None:
    first = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu")
    second = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="tanh", device="cpu", timeout_s=7.0)
    try:
        first.reset(seed=0)
        hosts = set(children_of(os.getpid()))
        second.reset(seed=0)
        assert set(children_of(os.getpid())) == hosts
        first.close()
        second.reset(seed=0)
    finally:
        first.close()
        second.close()


def test_a_host_that_was_killed_leaves_files_that_the_next_one_sweeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu")
    env.reset(seed=0)
    family = descendants_of(os.getpid())
    for pid in children_of(os.getpid()):
        os.kill(pid, signal.SIGKILL)
    assert not wait_for_none(family, limit_s=5.0)
    assert list(tmp_path.iterdir())
    env.reset(seed=0)
    assert len(list(tmp_path.glob("gym-kernel-host-*"))) == 1
    env.close()
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_gets_a_host_of_its_own() -> None:
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu")
    env.reset(seed=0)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            prompt, _ = env.reset(seed=0)
            env.close()
            status = 0 if prompt else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    try:
        assert os.waitstatus_to_exitcode(status) == 0
        env.reset(seed=0)
        env.step("")
    finally:
        env.close()
