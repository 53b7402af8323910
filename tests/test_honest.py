"""Every kernel in ``honest/`` is called correct and rewarded: no way of writing one trips a defence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from corpus import Module, load_corpus
from small_tasks import with_rows

from gym_kernel.tasks import load

HONEST = load_corpus(Path(__file__).parent / "honest")
TIMEOUT_S = 60.0
ROWS = 16
BUILD_TIMEOUT_S = 240.0


def params(device: str) -> list[Any]:
    """The modules that a device runs, those that build for long marked as slow."""
    return [
        pytest.param(module, id=module.name, marks=[pytest.mark.slow] if module.slow else [])
        for module in HONEST
        if device in module.devices
    ]


class Judges:
    """Environments on one device, with a longer time limit for modules that build, on one host."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._tasks = [*(with_rows(task.id, ROWS) for task in load("pilot")), *load("core")]
        self._envs: dict[float, gymnasium.Env[Any, Any]] = {}

    def accept(self, module: Module) -> None:
        """Hand a module in and assert that it is called correct and rewarded."""
        env = self._env(module)
        env.reset(seed=0, options={"task": module.task})
        feedback, reward, terminated, truncated, info = env.step(module.code)
        assert info["status"] == "correct", feedback
        assert (terminated, truncated) == (True, False)
        assert 0.3 <= reward <= 3.0
        assert math.isfinite(info["runtime_us"])
        assert info["cheat"] == ""

    def close(self) -> None:
        for env in self._envs.values():
            env.close()

    def _env(self, module: Module) -> gymnasium.Env[Any, Any]:
        limit_s = module.timeout_s or (BUILD_TIMEOUT_S if module.slow else TIMEOUT_S)
        if limit_s not in self._envs:
            self._envs[limit_s] = gymnasium.make(
                "gym_kernel:KernelEnv-v0", tasks=self._tasks, device=self._device, timeout_s=limit_s
            )
        return self._envs[limit_s]


@pytest.fixture(scope="module")
def cpu(warm_evaluator: None) -> Iterator[Judges]:
    judges = Judges("cpu")
    yield judges
    judges.close()


@pytest.fixture(scope="module")
def cuda() -> Iterator[Judges]:
    judges = Judges("cuda")
    yield judges
    judges.close()


@pytest.mark.parametrize("module", params("cpu"))
def test_honest_kernel_is_accepted(module: Module, cpu: Judges) -> None:
    cpu.accept(module)


@pytest.mark.gpu
@pytest.mark.parametrize("module", params("cuda"))
def test_honest_kernel_is_accepted_on_a_gpu(module: Module, cuda: Judges) -> None:
    cuda.accept(module)


def test_every_task_has_honest_kernels_in_several_styles() -> None:
    pilot = {task.id for task in load("pilot")}
    styles: dict[str, set[str]] = {}
    for module in HONEST:
        assert module.expected == ("correct",), module.name
        styles.setdefault(module.task, set()).add(module.kind)
    assert set(styles) >= pilot
    assert len(styles) >= 35
    assert min(len(styles[task]) for task in pilot) >= 5
