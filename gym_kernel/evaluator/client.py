"""The caller's end: evaluate submissions on a host that all evaluators of this process share."""

from __future__ import annotations

import atexit
import itertools
import math
import numbers
import os
import threading
import weakref
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from gym_kernel.errors import ConfigurationError, DeviceUnavailable, EvaluatorError, TaskError
from gym_kernel.evaluator.briefing import Briefing
from gym_kernel.evaluator.device_choice import device_name, resolve_device
from gym_kernel.evaluator.fence import check_isolation_name
from gym_kernel.evaluator.framing import ChannelClosed, ChannelTimeout, FrameError, sendable_text
from gym_kernel.evaluator.host_process import HostProcess
from gym_kernel.evaluator.messages import (
    Alive,
    Brief,
    BriefingReady,
    Evaluate,
    Failure,
    FailureCause,
    Greeting,
    Request,
    VerdictReady,
)
from gym_kernel.evaluator.record import RECORD_FILE
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.submission import Submission, extract_code
from gym_kernel.evaluator.verdict import Verdict
from gym_kernel.tasks.task import Task

__all__ = ["Evaluator", "EvaluatorConfig"]

# Workers on a GPU take long to wake and wake best together; how many its memory has room for, the judge knows.
_STANDBY_WORKERS = {"cpu": 2, "cuda": 8}
_TRIES = 2
# A queue of many slow submissions is legitimate, and each of them has limits.
_ANSWER_LIMIT_S = 24 * 3600.0
# A host gives a sign of life every few seconds; one that is silent for this long is stopped or stuck.
_SILENCE_S = 60.0

_Answer = Union[VerdictReady, BriefingReady]


@dataclass(frozen=True)
class EvaluatorConfig:
    """How submissions are evaluated.

    Attributes:
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        isolation: ``"auto"``, or a tier that must be had.
        timeout_s: Seconds that one submission may spend on loading, compiling and running; queues do not count.
        record_dir: Folder for one line of JSON per evaluation, or ``None``.
        evaluation_seed: Root of the judge's seeds for a replay; ``None`` draws them from the operating system.

    Raises:
        ConfigurationError: A value is out of its domain.
    """

    device: str = "auto"
    isolation: str = "auto"
    timeout_s: float = 300.0
    record_dir: str | None = None
    evaluation_seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "device", device_name(self.device))
        check_isolation_name(self.isolation)
        # Numbers of numpy and the like are welcome, but plain ones travel.
        object.__setattr__(self, "timeout_s", _seconds(self.timeout_s))
        object.__setattr__(self, "record_dir", _folder(self.record_dir))
        object.__setattr__(self, "evaluation_seed", _seed(self.evaluation_seed))


def _seconds(value: Any) -> float:
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except OverflowError:
            seconds = math.inf
        if math.isfinite(seconds) and seconds > 0:
            return seconds
    raise ConfigurationError(f"timeout_s={value!r} must be a positive number of seconds.")


def _seed(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and 0 <= int(value) < 1 << 62:
        return int(value)
    raise ConfigurationError(f"evaluation_seed={value!r} must be a whole number in [0, 2**62), or None.")


def _folder(value: Any) -> str | None:
    if value is None:
        return None
    try:
        folder = os.fspath(value)
        if isinstance(folder, str) and "\0" not in folder and folder.encode("utf-8"):
            return folder
    except (TypeError, UnicodeEncodeError):
        pass
    raise ConfigurationError(f"record_dir={value!r} must be the path of a folder, or None.")


class Evaluator:
    """Evaluates submissions. Starts nothing until it is asked something; safe to use from many threads.

    Args:
        config: See :class:`EvaluatorConfig`.
    """

    def __init__(self, config: EvaluatorConfig = EvaluatorConfig()) -> None:
        self.config = config
        self._host: _SharedHost | None = None
        self._owner_pid = 0
        self._mutex = threading.RLock()
        _evaluators.add(self)

    def start(self) -> None:
        """Start the host, or join the one that is running.

        Raises:
            DeviceUnavailable: The device is not on this machine.
            IsolationUnavailable: The tier cannot be had.
            EvaluatorError: The host did not come up.
        """
        self._connected()

    def brief(self, task: Task) -> Briefing:
        """What is known about a task on the device; measures the reference at the first call.

        Raises:
            TaskError: The task's reference does not run.
            DeviceUnavailable: The device cannot be used.
            EvaluatorError: The evaluator failed.
        """
        message = ""
        for _ in range(_TRIES):
            host = self._connected()
            answer = host.ask(Brief(host.next_id(), host.device, task))
            if isinstance(answer, BriefingReady):
                return answer.briefing
            assert isinstance(answer, Failure)
            if answer.cause is FailureCause.TASK:
                raise TaskError(answer.message)
            if answer.cause is FailureCause.DEVICE:
                raise DeviceUnavailable(answer.message)
            message = answer.message
        raise EvaluatorError(
            f"The evaluator could not describe task {task.id!r}: {message} It was tried twice with a new host; run "
            "`gym-kernel doctor`, and look whether this machine ends processes for want of memory."
        )

    def evaluate(self, submission: Submission) -> Verdict:
        """Evaluate one submission; blocks until its verdict is there.

        What the policy wrote never raises. A failure of the infrastructure is tried once more and then reported
        as a verdict of its own.
        """
        message, device, isolation = "", self.config.device, ""
        for _ in range(_TRIES):
            try:
                host = self._connected()
            except EvaluatorError as error:
                message = str(error)
                continue
            device, isolation = host.device, host.isolation
            answer = host.ask(self._request(host, submission))
            if isinstance(answer, VerdictReady):
                if answer.verdict.status is not Status.INFRASTRUCTURE_ERROR:
                    return answer.verdict
                message = answer.verdict.reason
            else:
                assert isinstance(answer, Failure)
                message = answer.message
        return Verdict(
            status=Status.INFRASTRUCTURE_ERROR,
            task_id=submission.task.id,
            evaluation_id=submission.evaluation_id,
            device=device,
            isolation=isolation,
            reason="The evaluator failed twice; this is not the submission's fault.",
            detail=message,
        )

    def close(self) -> None:
        """Leave the host; the last evaluator to leave ends it. Safe to call twice."""
        with self._mutex:
            host, self._host = self._host, None
            if host is not None and self._owner_pid == os.getpid():
                host.leave()

    def __del__(self) -> None:
        # A half-made instance has no mutex; interpreter shutdown is atexit's business.
        if getattr(self, "_host", None) is not None:
            self.close()

    def _forget_after_fork(self) -> None:
        """In a forked child: the host is the parent's, and another thread may have held the lock."""
        self._mutex = threading.RLock()
        self._host = None

    def _connected(self) -> _SharedHost:
        with self._mutex:
            # A forked child has its own registry and must not talk on its parent's socket.
            forked = self._owner_pid != os.getpid()
            if self._host is not None and (forked or self._host.is_lost):
                if not forked:
                    self._host.leave()
                self._host = None
            if self._host is None:
                _check_record_dir(self.config.record_dir)
                self._host = _join(self.config)
                self._owner_pid = os.getpid()
            return self._host

    def _request(self, host: _SharedHost, submission: Submission) -> Evaluate:
        record_dir = self.config.record_dir
        return Evaluate(
            id=host.next_id(),
            device=host.device,
            task=submission.task,
            # No valid Python source contains an unescaped lone surrogate, so nothing is lost.
            code=sendable_text(extract_code(submission.text)),
            evaluation_id=submission.evaluation_id,
            timeout_s=self.config.timeout_s,
            seed=self.config.evaluation_seed,
            record_dir=None if record_dir is None else os.path.abspath(record_dir),
        )


class _SharedHost:
    """A host and the thread that reads its answers."""

    def __init__(self, key: tuple[str, str], device: str, process: HostProcess) -> None:
        self.key = key
        self.device = device
        self.isolation = process.isolation
        self.is_lost = False
        self.users = 0
        self._process = process
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[_Answer | Failure]] = {}
        self._mutex = threading.Lock()
        self._send_lock = threading.Lock()
        threading.Thread(target=self._read, name="gym-kernel-host-reader", daemon=True).start()

    def next_id(self) -> int:
        return next(self._ids)

    def ask(self, request: Request) -> _Answer | Failure:
        future: Future[_Answer | Failure] = Future()
        with self._mutex:
            if self.is_lost:
                return Failure(request.id, FailureCause.INTERNAL, "The evaluator's host is gone.")
            self._waiting[request.id] = future
        try:
            with self._send_lock:
                self._process.channel.send(request, timeout_s=30.0)
            return future.result(_ANSWER_LIMIT_S)
        except (TypeError, ValueError) as error:
            return Failure(request.id, FailureCause.TASK, f"The request cannot be written down: {error}")
        except (ChannelClosed, ChannelTimeout, FutureTimeout) as error:
            self._lose(f"The evaluator's host does not answer: {error}")
            return Failure(request.id, FailureCause.INTERNAL, f"The evaluator's host was lost: {error}")
        finally:
            with self._mutex:
                self._waiting.pop(request.id, None)

    def leave(self) -> None:
        with _registry_lock:
            self.users -= 1
            if self.users > 0:
                return
            if _hosts.get(self.key) is self:
                del _hosts[self.key]
        self.stop()

    def stop(self) -> None:
        self._lose("The evaluator was closed.")
        self._process.stop()

    def abandon(self) -> None:
        self._process.channel.abandon()

    def _read(self) -> None:
        try:
            while True:
                answer = self._process.channel.receive(_SILENCE_S)
                if isinstance(answer, (Alive, Greeting)):
                    continue
                with self._mutex:
                    future = self._waiting.get(answer.id)
                if future is not None and not future.done():
                    future.set_result(answer)
        except (ChannelClosed, ChannelTimeout, FrameError, OSError, ValueError) as error:
            self._lose(f"{error} {self._process.last_words()}".strip())

    def _lose(self, why: str) -> None:
        with self._mutex:
            self.is_lost = True
            waiting = dict(self._waiting)
        for request_id, future in waiting.items():
            if not future.done():
                future.set_result(Failure(request_id, FailureCause.INTERNAL, why))


def _check_record_dir(record_dir: str | None) -> None:
    """Find out before anything is judged whether a record can be kept.

    Raises:
        ConfigurationError: The folder cannot be written.
    """
    if record_dir is None:
        return
    try:
        Path(record_dir).mkdir(parents=True, exist_ok=True)
        with open(Path(record_dir) / RECORD_FILE, "ab"):
            pass
    except OSError as error:
        raise ConfigurationError(
            f"record_dir={record_dir!r} cannot be written: {error.strerror}. Pass a folder that can, or None."
        ) from error


_evaluators: weakref.WeakSet[Evaluator] = weakref.WeakSet()
_hosts: dict[tuple[str, str], _SharedHost] = {}
_registry_lock = threading.RLock()


def _join(config: EvaluatorConfig) -> _SharedHost:
    device = resolve_device(config.device)
    kind = "cpu" if device == "cpu" else "cuda"
    key = (device if kind == "cuda" else kind, config.isolation)
    with _registry_lock:
        host = _hosts.get(key)
        if host is None or host.is_lost:
            host = _SharedHost(key, device, HostProcess(device, config.isolation, _STANDBY_WORKERS[kind]))
            _hosts[key] = host
        host.users += 1
        return host


def _forget_after_fork() -> None:
    global _registry_lock
    for host in _hosts.values():
        host.abandon()
    _hosts.clear()
    _registry_lock = threading.RLock()
    for evaluator in _evaluators:
        evaluator._forget_after_fork()


@atexit.register
def _stop_all() -> None:
    with _registry_lock:
        hosts = list(_hosts.values())
        _hosts.clear()
    for host in hosts:
        host.stop()


os.register_at_fork(after_in_child=_forget_after_fork)
