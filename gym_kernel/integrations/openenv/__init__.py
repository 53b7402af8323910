"""OpenEnv: the kernel environment as a server with typed actions and observations, and its client.

    gym-kernel serve --host 0.0.0.0                                  # the server
    client = KernelClient("http://127.0.0.1:8000").sync()            # the client

Needs ``pip install gym-kernel[openenv]``. Importing this package imports OpenEnv, but neither torch nor triton.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gym_kernel.integrations.openenv.app import create_kernel_app
    from gym_kernel.integrations.openenv.client import KernelClient
    from gym_kernel.integrations.openenv.environment import KernelEnvironment
    from gym_kernel.integrations.openenv.models import KernelAction, KernelObservation, KernelState
    from gym_kernel.integrations.openenv.rubric import TurnRubric
    from gym_kernel.integrations.openenv.settings import ServerSettings

__all__ = [
    "KernelAction",
    "KernelClient",
    "KernelEnvironment",
    "KernelObservation",
    "KernelState",
    "ServerSettings",
    "TurnRubric",
    "create_kernel_app",
]

try:
    import openenv.core  # noqa: F401
except ImportError as error:
    raise ImportError(
        "gym_kernel.integrations.openenv needs OpenEnv, and importing it failed: "
        f"{error}. Install it with `pip install gym-kernel[openenv]`."
    ) from error

_MODULES = {
    "KernelAction": "models",
    "KernelClient": "client",
    "KernelEnvironment": "environment",
    "KernelObservation": "models",
    "KernelState": "models",
    "ServerSettings": "settings",
    "TurnRubric": "rubric",
    "create_kernel_app": "app",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
