"""Linting in a process of its own, so that a task that ends its process or never ends spoils no other task's report."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import TracebackType

from gym_kernel.errors import EvaluatorError, GymKernelError
from gym_kernel.evaluator.device_choice import resolve_device
from gym_kernel.linter.lint import lint_task
from gym_kernel.linter.report import Finding, Rule, Severity, ShapeReport, TaskReport
from gym_kernel.linter.workbench import lint_device
from gym_kernel.tasks.task import Task

__all__ = ["LintProcess"]

_START_LIMIT_S = 600.0
"""Longest that the process may take to import torch and to measure a GPU's ceilings, waiting for it included."""
_END_LIMIT_S = 5.0


class LintProcess:
    """A process that lints one task after another; it is replaced where a task ends it or takes too long.

    Use it as a context manager. What a task prints goes to the standard error.

    Args:
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        limit_s: Longest that one task may take, all of its shapes together, in seconds.

    Raises:
        ConfigurationError: The device's name is not known.
        DeviceUnavailable: The device is not on this machine.
    """

    def __init__(self, device: str, limit_s: float) -> None:
        self._device = resolve_device(device)
        self._limit_s = limit_s
        # Not a fork: this process may hold threads and locks of torch.
        self._context = multiprocessing.get_context("spawn")
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> LintProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def lint(self, task: Task) -> TaskReport:
        """Lint a task; as :func:`~gym_kernel.linter.lint.lint_task`, but whatever its code does.

        Args:
            task: Which.

        Raises:
            EvaluatorError: The process could not be started.
        """
        if self._process is not None and not self._process.is_alive():
            # The task before left something behind that ended it later.
            self.close()
        connection = self._connection or self._start()
        with suppress(ConnectionError):
            connection.send(task)
        answer = self._answer(connection, self._limit_s)
        if isinstance(answer, TaskReport):
            return answer
        process = self._process
        assert process is not None
        if answer is None and process.is_alive():
            why = (
                f"Checking it took more than {self._limit_s:g} s. Look for a loop without an end, choose smaller "
                "sizes, or give it more time with --limit."
            )
        else:
            process.join(_END_LIMIT_S)
            why = (
                f"The process that ran its reference ended meanwhile ({_ending(process.exitcode)}). Take out what "
                "ends or crashes the process, such as os._exit."
            )
        self.close()
        return _unlinted(task, self._device, why)

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join(_END_LIMIT_S)
        self._process = self._connection = None

    def _start(self) -> Connection:
        ours, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(theirs, self._device), daemon=True)
        self._process.start()
        self._connection = ours
        theirs.close()
        answer = self._answer(ours, _START_LIMIT_S)
        if answer is True:
            return ours
        exit_code = self._process.exitcode
        self.close()
        if isinstance(answer, GymKernelError):
            raise answer
        raise EvaluatorError(
            f"The process that checks tasks could not be started ({_ending(exit_code)}). Its own words are above."
        )

    def _answer(self, connection: Connection, limit_s: float) -> object:
        """What the process sends, or ``None`` where it ends or the limit passes."""
        assert self._process is not None
        # The sentinel as well: children of the process may hold its end of the connection open.
        wait([connection, self._process.sentinel], limit_s)
        with suppress(EOFError, ConnectionError):
            if connection.poll():
                return connection.recv()
        self._process.join(0.2)
        return None


def _serve(connection: Connection, device: str) -> None:
    # An interrupt from the keyboard is for the parent, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The standard output is the report's.
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        lint_device(device)
    except GymKernelError as error:
        connection.send(error)
        return
    connection.send(True)
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            report = lint_task(task, device)
        except KeyboardInterrupt:
            # Nobody can press a key here.
            why = "Its reference raises KeyboardInterrupt. Take that out."
            report = _unlinted(task, device, why)
        connection.send(report)


def _end_with_parent() -> None:
    # A parent that is killed ends nothing, and a reference may loop for ever.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _unlinted(task: Task, device: str, why: str) -> TaskReport:
    shape = task.id.partition("@")[2]
    return TaskReport(
        task.id,
        device,
        (ShapeReport(shape, (Finding(Rule.REFERENCE_RUNS, Severity.ERROR, why, shape),)),),
    )


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "no exit status"
    return f"exit status {exit_code}" if exit_code >= 0 else f"signal {-exit_code}"
