"""The example kernels are what a user copies first: each must be judged correct."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from gym_kernel.tasks import load

pytestmark = pytest.mark.usefixtures("warm_evaluator")

KERNELS = Path(__file__).parents[1] / "examples" / "kernels"
TASKS = [task.id for task in load("pilot")]

# What a good kernel for a memory-bound task reaches; the softmaxes read their input twice.
LEAST_FRACTION_ON_GPU = {"relu": 0.85, "mingpt_gelu": 0.85, "softmax": 0.5, "log_softmax": 0.5}


@pytest.fixture(scope="module")
def cpu_env() -> Iterator[gymnasium.Env]:
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="pilot", device="cpu")
    yield env
    env.close()


@pytest.fixture(scope="module")
def gpu_env() -> Iterator[gymnasium.Env]:
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="pilot", device="cuda")
    yield env
    env.close()


def play(env: gymnasium.Env, task: str, path: Path) -> dict:
    """Submit a file and return the info of a correct verdict."""
    env.reset(options={"task": task})
    feedback, reward, _, _, info = env.step(path.read_text())
    assert info["status"] == "correct", feedback
    assert reward > 0.3
    return info


@pytest.mark.parametrize("task", TASKS)
def test_triton_example_on_the_cpu(cpu_env: gymnasium.Env, task: str) -> None:
    play(cpu_env, task, KERNELS / f"{task}.py")


# So that the headers which its host begins to prepare are given up at the end of this file.
@pytest.mark.own_host
def test_cpp_example_on_the_cpu(cpu_env: gymnasium.Env) -> None:
    play(cpu_env, "mingpt_gelu", KERNELS / "cpp" / "mingpt_gelu.py")


@pytest.mark.gpu
@pytest.mark.parametrize("task", TASKS)
def test_triton_example_on_a_gpu(gpu_env: gymnasium.Env, task: str) -> None:
    info = play(gpu_env, task, KERNELS / f"{task}.py")
    assert info["roofline_fraction"] >= LEAST_FRACTION_ON_GPU.get(task, 0.8)


@pytest.mark.gpu
def test_inline_cuda_example_on_a_gpu(gpu_env: gymnasium.Env) -> None:
    info = play(gpu_env, "mingpt_gelu", KERNELS / "cuda" / "mingpt_gelu.py")
    assert info["roofline_fraction"] >= LEAST_FRACTION_ON_GPU["mingpt_gelu"]
