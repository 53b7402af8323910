"""The example kernels for the core suite: each must be judged correct, at its first shape and at another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from gym_kernel.tasks import load

pytestmark = pytest.mark.usefixtures("warm_evaluator")

KERNELS = Path(__file__).parents[1] / "examples" / "kernels" / "core"
EXAMPLES = sorted(path.stem for path in KERNELS.glob("*.py"))


def task_ids() -> list[str]:
    """Each example's task, and the same task at the last of its shapes."""
    tasks = load(EXAMPLES)
    return [id for task in tasks for id in (task.id, f"{task.id}@{task.shapes[-1].name}")]


@pytest.fixture(scope="module")
def cpu_env() -> Iterator[gymnasium.Env]:
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks=task_ids(), device="cpu")
    yield env
    env.close()


@pytest.fixture(scope="module")
def gpu_env() -> Iterator[gymnasium.Env]:
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks=EXAMPLES, device="cuda")
    yield env
    env.close()


def play(env: gymnasium.Env, task: str) -> None:
    """Submit a task's example and expect a correct verdict."""
    env.reset(options={"task": task})
    code = (KERNELS / f"{task.partition('@')[0]}.py").read_text(encoding="utf-8")
    feedback, reward, _, _, info = env.step(code)
    assert info["status"] == "correct", feedback
    assert reward > 0.3


@pytest.mark.parametrize("task", task_ids())
def test_core_example_on_the_cpu(cpu_env: gymnasium.Env, task: str) -> None:
    play(cpu_env, task)


@pytest.mark.gpu
@pytest.mark.parametrize("task", EXAMPLES)
def test_core_example_on_a_gpu(gpu_env: gymnasium.Env, task: str) -> None:
    play(gpu_env, task)
