"""Gymnasium environments that teach language models to write GPU kernels.

    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="pilot", device="auto")
    prompt, info = env.reset(seed=0)
    feedback, reward, terminated, truncated, info = env.step(reply)

Importing this package registers the environments. It imports neither torch nor triton and starts nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gym_kernel._version import __version__
from gym_kernel.errors import (
    ConfigurationError,
    DeviceUnavailable,
    EvaluatorError,
    GymKernelError,
    IsolationUnavailable,
    TaskError,
)
from gym_kernel.registration import register_environments

if TYPE_CHECKING:
    from gym_kernel.envs.kernel_env import KernelEnv
    from gym_kernel.envs.vector_env import KernelVectorEnv

__all__ = [
    "ConfigurationError",
    "DeviceUnavailable",
    "EvaluatorError",
    "GymKernelError",
    "IsolationUnavailable",
    "KernelEnv",
    "KernelVectorEnv",
    "TaskError",
    "__version__",
]

_LAZY = {
    "KernelEnv": "gym_kernel.envs.kernel_env",
    "KernelVectorEnv": "gym_kernel.envs.vector_env",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_environments()
