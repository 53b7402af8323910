"""The web application of a kernel environment's server."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from gymnasium.error import ResetNeeded
from openenv.core.env_server import create_app

from gym_kernel.errors import GymKernelError
from gym_kernel.integrations.openenv.environment import KernelEnvironment
from gym_kernel.integrations.openenv.message_guard import MessageGuard
from gym_kernel.integrations.openenv.models import KernelAction, KernelObservation
from gym_kernel.integrations.openenv.settings import ServerSettings
from gym_kernel.integrations.openenv.shared_evaluator import SharedEvaluator

__all__ = ["create_kernel_app"]


def create_kernel_app(
    settings: ServerSettings = ServerSettings(), shared: SharedEvaluator | None = None
) -> FastAPI:
    """Make the application. Its start-up starts the evaluator, its shutdown lets go of it.

    A session is a connection to ``/ws``. OpenEnv's ``POST /reset`` and ``POST /step`` have none: each makes an
    environment of its own, so that they show a prompt and nothing more. An evaluation whose client has gone runs
    to its end, ``settings.timeout_s`` at the latest, and its session is put away then.

    Args:
        settings: What the sessions have in common.
        shared: Their evaluator, for a caller who starts it beforehand.

    Returns:
        An ASGI application.

    Raises:
        ConfigurationError: A setting is out of its domain.
        TaskError: The settings name a task that does not exist.
    """
    shared = shared or SharedEvaluator(settings)
    make_session = functools.partial(KernelEnvironment, settings, shared)
    # Wrong settings are found here and not by the first client.
    make_session().close()
    app = create_app(
        make_session,
        KernelAction,
        KernelObservation,
        env_name="gym_kernel",
        max_concurrent_envs=settings.max_sessions,
    )
    app.add_middleware(MessageGuard)
    app.add_exception_handler(GymKernelError, _refuse)
    app.add_exception_handler(ResetNeeded, _refuse_without_session)
    app.router.lifespan_context = _with_evaluator(app, shared)
    return app


def _with_evaluator(
    app: FastAPI, shared: SharedEvaluator
) -> Callable[[FastAPI], contextlib.AbstractAsyncContextManager[None]]:
    inner = app.router.lifespan_context

    @contextlib.asynccontextmanager
    async def lifespan(running: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(shared.start)
        try:
            async with inner(running):
                yield
        finally:
            await asyncio.to_thread(shared.close)

    return lifespan


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, status_code=400)


async def _refuse_without_session(request: Request, error: Exception) -> JSONResponse:
    detail = "An HTTP request has no episode. Connect to the WebSocket endpoint /ws: reset, then step."
    return JSONResponse({"detail": detail}, status_code=409)
