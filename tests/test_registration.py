from __future__ import annotations

import importlib
import subprocess
import sys
import warnings

import gymnasium
import pytest

import gym_kernel
from gym_kernel.registration import ENV_ID, register_environments

PUBLIC = {
    "gym_kernel": {
        "ConfigurationError",
        "DeviceUnavailable",
        "EvaluatorError",
        "GymKernelError",
        "IsolationUnavailable",
        "KernelEnv",
        "KernelVectorEnv",
        "TaskError",
        "__version__",
    },
    "gym_kernel.envs": {
        "KernelEnv",
        "KernelInfo",
        "KernelText",
        "KernelVectorEnv",
        "clean_text",
        "feedback",
        "task_prompt",
    },
    "gym_kernel.wrappers": {"FeedbackMask", "NumericObservation", "RepairBudget", "TemplateAction"},
    "gym_kernel.rewards": {"CORRECT_REWARD", "SPEED_REWARD", "episode_return", "turn_reward"},
    "gym_kernel.registration": {"ENV_ID", "register_environments"},
    "gym_kernel.cli": {"main"},
}


def _run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


@pytest.mark.parametrize("module", PUBLIC)
def test_the_public_api_is_pinned(module: str) -> None:
    imported = importlib.import_module(module)
    assert set(imported.__all__) == PUBLIC[module]
    for name in imported.__all__:
        assert getattr(imported, name) is not None
        assert name in dir(imported)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_module_can_be_the_first_to_be_imported(module: str) -> None:
    names = ", ".join(sorted(PUBLIC[module]))
    assert _run(f"from {module} import {names}; print('done')") == "done"


@pytest.mark.parametrize("module", ["gym_kernel", "gym_kernel.wrappers"])
def test_an_unknown_name_is_an_attribute_error(module: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = importlib.import_module(module).Nonsense


def test_the_environment_is_registered_as_designed() -> None:
    spec = gymnasium.spec(ENV_ID)
    assert spec.nondeterministic is True
    assert spec.max_episode_steps is None
    assert isinstance(spec.entry_point, str)
    assert spec.kwargs == {}


def test_registering_twice_changes_nothing_and_warns_of_nothing() -> None:
    before = gymnasium.registry[ENV_ID]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_environments()
    assert gymnasium.registry[ENV_ID] is before


@pytest.mark.parametrize("heavy", ["torch", "triton", "msgspec", "tqdm", "gym_kernel.envs"])
def test_importing_the_package_is_light(heavy: str) -> None:
    assert _run(f"import sys, gym_kernel; print({heavy!r} in sys.modules)") == "False"


def test_importing_the_package_is_quick() -> None:
    code = (
        "import gymnasium, time; t = time.perf_counter(); import gym_kernel; print(time.perf_counter() - t)"
    )
    assert min(float(_run(code)) for _ in range(3)) < 0.1


def test_making_an_environment_imports_no_torch_and_starts_no_process() -> None:
    code = (
        "import gymnasium, os, sys; env = gymnasium.make('gym_kernel:KernelEnv-v0', tasks='pilot'); "
        "children = open(f'/proc/self/task/{os.getpid()}/children').read(); "
        "print('torch' in sys.modules, children == '')"
    )
    assert _run(code) == "False True"


def test_the_version_is_a_version() -> None:
    assert all(part.isdigit() for part in gym_kernel.__version__.split("."))


def test_a_reset_that_failed_spoils_nothing() -> None:
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="pilot", device="cpu")
    try:
        with pytest.raises(gym_kernel.TaskError):
            env.reset(options={"task": "rlu"})
        env.reset(seed=1)
        _, reward, terminated, _, info = env.step("no code at all")
        assert (reward, terminated, info["status"]) == (0.0, True, "rejected")
    finally:
        env.close()
