"""The supervisor: a small process between the host and one worker.

    host --fork--> supervisor --fork--> worker
                       |------fork--> init, process 1 of the worker's pid namespace (tier ``full``)

It opens the pid namespace, watches what the worker uses, and ends in the way that the worker has ended, so that the
host learns that from its own child. All of them stay in the supervisor's process group, which the host kills.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from gym_kernel.evaluator.fence import Isolation
from gym_kernel.evaluator.fence_limits import FenceLimits
from gym_kernel.evaluator.namespaces import fork_init, open_pid_namespace
from gym_kernel.evaluator.processes import become_subreaper, close_fds_except, die_with_parent
from gym_kernel.evaluator.watchdog import Watchdog

__all__ = ["supervise"]

_TICK_S = 0.1
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)


def supervise(
    host_pid: int,
    tier: Isolation,
    scratch: Path,
    limits: FenceLimits,
    output_fd: int,
    work: Callable[[int], None],
) -> NoReturn:
    """Fork a worker, see it to its end, and end likewise. The caller leads a process group of its own.

    Args:
        host_pid: Process to die with.
        tier: Tier that the worker will enter.
        scratch: Folder of the worker.
        limits: Bounds to watch.
        output_fd: Where the submission's output goes; says there why a worker was stopped.
        work: What the worker does; gets the number that its parent has for it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    # A signal that can be answered: with the host gone, somebody has to kill what the worker has started.
    die_with_parent(host_pid, signal.SIGTERM)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    own = os.getpid()
    init: int | None = None
    if tier is Isolation.FULL:
        open_pid_namespace()
        # Becoming somebody else, even in a new user namespace, makes the kernel forget it.
        die_with_parent(host_pid, signal.SIGTERM)
        init = fork_init()
    else:
        become_subreaper()
    worker = os.fork()
    if worker == 0:
        _become_worker(lambda: work(0 if tier is Isolation.FULL else own))
    close_fds_except({0, 1, 2, output_fd})
    watchdog = Watchdog(
        limits,
        frozenset() if init is None else frozenset({init}),
        None if tier is Isolation.FULL else scratch,
    )
    status = _wait(worker, watchdog, output_fd)
    if init is not None:
        os.kill(init, signal.SIGKILL)
        # It ends when everything else in its namespace has.
        os.waitpid(init, 0)
    _end_like(status)


def _become_worker(work: Callable[[], None]) -> NoReturn:
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        work()
    except BaseException:
        traceback.print_exc(file=sys.stderr)
        sys.stderr.flush()
    finally:
        os._exit(70)


def _wait(worker: int, watchdog: Watchdog, output_fd: int) -> int:
    """Reap until the worker is among what has ended; returns its wait status."""
    while True:
        received = signal.sigtimedwait(_SIGNALS, _TICK_S)
        if received is not None and received.si_signo == signal.SIGTERM:
            os.killpg(0, signal.SIGKILL)
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == worker:
                return status
            if pid == 0:
                break
        complaint = watchdog.complaint()
        if complaint is not None:
            _say(output_fd, f"\nThe submission was stopped: {complaint}.\n")
            os.kill(worker, signal.SIGKILL)


def _say(output_fd: int, text: str) -> None:
    # The pipe may be full of what the submission printed.
    os.set_blocking(output_fd, False)
    try:
        os.write(output_fd, text.encode())
    except OSError:
        return


def _end_like(status: int) -> NoReturn:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 70)
