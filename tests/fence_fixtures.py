"""Evaluators inside each isolation tier, for submissions to try what they can reach."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gym_kernel import tasks
from gym_kernel.evaluator import client, host_process
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.fence import Isolation
from gym_kernel.evaluator.fence_probe import probe_isolation
from gym_kernel.evaluator.processes import children_of, descendants_of
from gym_kernel.evaluator.submission import Submission
from gym_kernel.evaluator.verdict import Verdict

KERNELS = Path(__file__).parents[1] / "examples" / "kernels"
ROOT = os.geteuid() == 0
SECRET = "a secret of the caller"

MODEL = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""


@dataclass
class Fenced:
    """An evaluator whose workers are in one tier, and the people round it."""

    tier: Isolation
    evaluator: Evaluator
    base: Path
    host: int

    @property
    def judge(self) -> int:
        # Workers lead groups of their own.
        (judge,) = (pid for pid in children_of(self.host) if group_of(pid) == os.getpgid(self.host))
        return judge

    @property
    def siblings(self) -> set[int]:
        return descendants_of(self.host) - {self.judge}

    def run(self, code: str, task: str = "relu") -> Verdict:
        return self.evaluator.evaluate(Submission(tasks.load(task)[0], code))

    def ask(self, body: str, **values: object) -> object:
        """Run statements in a submission; returns what they have left in ``seen``."""
        verdict = self.run(asking(body, **values))
        text = f"{verdict.reason}\n{verdict.detail}"
        assert "SEEN" in text, text
        return json.loads(text.split("SEEN", 1)[1].split("NEES", 1)[0])


def group_of(pid: int) -> int | None:
    """Process group, or ``None`` of a process that has ended meanwhile."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def asking(body: str, **values: object) -> str:
    head = "\n".join(f"{name} = {value!r}" for name, value in values.items())
    return (
        "import ctypes, json, os, signal, socket, subprocess, sys, threading, time\nimport torch\n"
        f"{head}\nseen = None\n{textwrap.dedent(body)}\n{MODEL}\n"
        "raise RuntimeError('SEEN' + json.dumps(seen) + 'NEES')\n"
    )


@contextlib.contextmanager
def fenced_by(tier: Isolation, base: Path) -> Iterator[Fenced]:
    before = set(children_of(os.getpid()))
    evaluator = Evaluator(
        EvaluatorConfig(device="cpu", isolation=tier.value, timeout_s=60.0, record_dir=str(base / "records"))
    )
    hosts, client._hosts = client._hosts, {}
    try:
        evaluator.start()
        (host,) = set(children_of(os.getpid())) - before
        # The judge and the workers start with the first request.
        evaluator.evaluate(Submission(tasks.load("relu")[0], f"import torch\n{MODEL}"))
        yield Fenced(tier, evaluator, base, host)
    finally:
        evaluator.close()
        client._hosts = hosts


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder that everybody may use, so that permissions alone stop nobody."""
    base = Path(tempfile.mkdtemp(prefix="gym-kernel-test-"))
    base.chmod(0o777)
    for name in ("home", "records"):
        (base / name).mkdir()
        (base / name).chmod(0o777)
    (base / "home" / "secret").write_text(SECRET)
    yield base
    shutil.rmtree(base)


def require(tier: Isolation) -> None:
    missing = probe_isolation().missing_for(tier)
    if missing:
        pytest.skip(f"tier {tier.value!r} cannot be had here: {' '.join(missing)}")


@pytest.fixture(scope="module", params=list(Isolation), ids=lambda tier: tier.value)
def fenced(request: pytest.FixtureRequest, open_folder: Path) -> Iterator[Fenced]:
    require(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOME_TOKEN", SECRET)
        patch.setenv("HOME", str(open_folder / "home"))
        patch.setenv("GYM_KERNEL_CACHE", str(open_folder / "cache"))
        with fenced_by(request.param, open_folder) as fenced:
            yield fenced


@pytest.fixture(scope="module", params=list(Isolation), ids=lambda tier: tier.value)
def cramped(request: pytest.FixtureRequest, open_folder: Path) -> Iterator[Fenced]:
    """The same with small bounds."""
    require(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        patch.setattr(host_process, "_HOST_MODULE", "cramped_host")
        with fenced_by(request.param, open_folder) as fenced:
            yield fenced


def wait_until(condition: Callable[[], bool], limit_s: float = 5.0) -> bool:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def processes_named(marker: str) -> list[int]:
    """Pids of processes that have ``marker`` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and marker.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found
