"""The application with its defaults, for ``openenv.yaml`` and ``uvicorn gym_kernel.integrations.openenv.asgi:app``."""

from gym_kernel.integrations.openenv.app import create_kernel_app

__all__ = ["app"]

app = create_kernel_app()
