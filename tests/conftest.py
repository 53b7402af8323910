"""Options, markers and fixtures that every test may use."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from fence_fixtures import cramped, fenced, open_folder  # noqa: F401 (fixtures of the fence's tests)

from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig

_HAS_CUDA = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _gpu_is_usable():
        _skip(marked, "no CUDA GPU that torch can use")
    if not config.getoption("--run-slow"):
        _skip([item for item in items if item.get_closest_marker("slow")], "slow: pass --run-slow")


def _skip(items: list[pytest.Item], reason: str) -> None:
    for item in items:
        item.add_marker(pytest.mark.skip(reason=reason))


def _gpu_is_usable() -> bool:
    # Importing torch takes seconds, and asking it for CUDA in this process would initialise the driver here.
    if not (Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi")):
        return False
    return subprocess.run([sys.executable, "-c", _HAS_CUDA], timeout=120, check=False).returncode == 0


@pytest.fixture
def make_env() -> Iterator[Any]:
    """Make environments on the CPU through Gymnasium, and close them afterwards."""
    made: list[gymnasium.Env[Any, Any]] = []

    def make(**kwargs: Any) -> gymnasium.Env[Any, Any]:
        env = gymnasium.make("gym_kernel:KernelEnv-v0", **{"device": "cpu", "tasks": "relu", **kwargs})
        made.append(env)
        return env

    yield make
    for env in made:
        env.close()


class HostKeeper:
    """Keeps the CPU evaluator's host alive between tests, so that not each of them starts one."""

    def __init__(self) -> None:
        self._evaluator = Evaluator(EvaluatorConfig(device="cpu"))

    def keep(self) -> None:
        """Start the host, or join the one there is; one that was lost is replaced."""
        self._evaluator.start()

    def let_go(self) -> None:
        """End the host, unless somebody else uses it."""
        self._evaluator.close()


_keeper = HostKeeper()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("skip"):
        return
    if item.get_closest_marker("own_host"):
        _keeper.let_go()
    elif "warm_evaluator" in getattr(item, "fixturenames", ()):
        _keeper.keep()


def pytest_sessionfinish() -> None:
    _keeper.let_go()


@pytest.fixture(scope="module")
def warm_evaluator() -> None:
    """Have the CPU evaluator's host alive in a test; it stays for those to come, until one marked ``own_host``."""
