"""``gym-kernel serve``: the environment as an OpenEnv server."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING

from gym_kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from gym_kernel.integrations.openenv.settings import ServerSettings
    from gym_kernel.integrations.openenv.shared_evaluator import SharedEvaluator

__all__ = ["add_parser"]

# Sockets are closed at once, so that nobody is left to wait for; this is for sessions to be put away.
_GRACE_S = 2
# A trainer may be too busy to answer a ping for a while; a machine that is gone never will.
_PING_INTERVAL_S, _PING_TIMEOUT_S = 30.0, 120.0
_BACKLOG = 1_024
_LARGEST_PORT = 65_535
_INTERRUPTED = 130


class _Stopped(SystemExit):
    """SIGTERM."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the program's parser."""
    parser = commands.add_parser(
        "serve",
        help="serve the environment to OpenEnv clients",
        description="Serve the environment to OpenEnv clients over WebSocket, until SIGTERM or Ctrl-C.",
        epilog="Anyone who reaches the port may run code inside the isolation tier: keep it on a trusted network.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=8000, help="port to listen on; 0 picks a free one (default: 8000)"
    )
    parser.add_argument(
        "--tasks",
        nargs="+",
        default=["pilot"],
        metavar="TASK",
        help="suites and task ids to serve (default: pilot)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    parser.add_argument(
        "--isolation", default="auto", help="tier that submissions must run under (default: auto)"
    )
    parser.add_argument(
        "--timeout",
        "--timeout-s",
        dest="timeout_s",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="what one submission may take, queues not counted (default: 300)",
    )
    parser.add_argument("--turns", type=int, default=2, help="submissions in an episode (default: 2)")
    parser.add_argument(
        "--discount",
        type=float,
        default=0.4,
        help="weight of a submission against the one before (default: 0.4)",
    )
    parser.add_argument("--max-sessions", type=int, default=64, help="sessions open at once (default: 64)")
    parser.add_argument(
        "--record-dir", metavar="DIR", help="append a record of each evaluation in this folder"
    )
    parser.add_argument("--kernelbench", metavar="PATH", help="a KernelBench checkout, for kernelbench/...")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    previous = signal.signal(signal.SIGTERM, _stop)
    try:
        with contextlib.suppress(_Stopped):
            _serve(_settings(options), options.host, options.port)
    finally:
        signal.signal(signal.SIGTERM, previous)
    return 0


def _stop(*_: object) -> None:
    raise _Stopped(0)


def _settings(options: argparse.Namespace) -> ServerSettings:
    try:
        from gym_kernel.integrations.openenv import ServerSettings
    except ImportError as error:
        raise ConfigurationError(str(error)) from error
    return ServerSettings(
        tasks=tuple(options.tasks),
        device=options.device,
        isolation=options.isolation,
        timeout_s=options.timeout_s,
        turns=options.turns,
        discount=options.discount,
        max_sessions=options.max_sessions,
        record_dir=options.record_dir,
        kernelbench=options.kernelbench,
    )


def _serve(settings: ServerSettings, host: str, port: int) -> None:
    import uvicorn

    from gym_kernel.integrations.openenv.app import create_kernel_app
    from gym_kernel.integrations.openenv.shared_evaluator import SharedEvaluator

    shared = SharedEvaluator(settings)
    app = create_kernel_app(settings, shared)
    code = 0
    with _listen(host, port) as listener:
        try:
            # Before the server: what is wrong with the machine is a sentence here, and a traceback in there.
            shared.start()
            config = uvicorn.Config(
                app,
                ws_ping_interval=_PING_INTERVAL_S,
                ws_ping_timeout=_PING_TIMEOUT_S,
                timeout_graceful_shutdown=_GRACE_S,
            )
            print(
                f"Serving {', '.join(settings.tasks)} at {_url(listener)} until SIGTERM or Ctrl-C. In a browser, see "
                f"{_url(listener)}/health and {_url(listener)}/docs.",
                flush=True,
            )
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            code = _INTERRUPTED
            raise
        finally:
            _end(shared, code)


def _listen(host: str, port: int) -> socket.socket:
    # Larger ones would be taken modulo 65,536.
    if not 0 <= port <= _LARGEST_PORT:
        raise ConfigurationError(f"--port must be from 0 to {_LARGEST_PORT}, not {port}.")
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot listen on {host} port {port}: {error}. Pass another --port, or 0 for any, and a --host of "
            "this machine."
        ) from error


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _end(shared: SharedEvaluator, code: int) -> None:
    shared.close()
    if not shared.busy:
        return
    # A thread that waits for a verdict cannot be interrupted, and Python would wait for it. The evaluator's host
    # sees this process go, and ends everything below it.
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
