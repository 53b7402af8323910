"""The host: a process that has torch and triton imported, never touches a GPU, and forks everything else.

    caller  --socket-->  host  --fork--> judge, one for each device
                               --fork--> worker, single use; socket and pipes go to the judge

It runs one thread and one loop, because only a process without threads can be forked safely. It owns every
judge and worker: it reaps them, kills what they leave behind, and goes when its caller goes, however that ends.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Callable

from gym_kernel.errors import IsolationUnavailable
from gym_kernel.evaluator.fence import Isolation, choose_isolation
from gym_kernel.evaluator.framing import Channel, ChannelClosed, ChannelTimeout, FrameError
from gym_kernel.evaluator.header_preparation import HeaderPreparation
from gym_kernel.evaluator.judge_handle import JudgeHandle
from gym_kernel.evaluator.messages import (
    Alive,
    Evaluate,
    Failure,
    FailureCause,
    Greeting,
    HostToCaller,
    JudgeAlive,
    Progress,
    Request,
    WorkerDone,
    WorkerOffer,
    WorkerTaken,
)
from gym_kernel.evaluator.processes import (
    become_subreaper,
    children_of,
    close_fds_except,
    die_with_parent,
    set_undumpable,
)
from gym_kernel.evaluator.scratch import HostScratch
from gym_kernel.evaluator.worker_pool import WorkerPool

__all__ = ["Host", "main"]

_TICK_S = 0.5
_GRACE_S = 30.0
_SIGN_S = 3.0
_LAST_SWEEP_S = 2.0


class Host:
    """The event loop of a host process.

    Args:
        caller: Socket to the caller.
        caller_pid: Process that owns this host.
        scratch: Folder of this host, removed at the end.
        isolation: Tier that workers enter.
        standby: Workers kept warm for each judge.
    """

    def __init__(
        self, caller: socket.socket, caller_pid: int, scratch: HostScratch, isolation: Isolation, standby: int
    ) -> None:
        self._caller: Channel[Request] = Channel(caller, Request, max_frame_bytes=8 << 20)
        self._caller_pid = caller_pid
        self._caller_pidfd = _open_pidfd(caller_pid)
        self._scratch = scratch
        self._isolation = isolation
        self._standby = standby
        self._judges: dict[str, JudgeHandle] = {}
        self._headers = HeaderPreparation()
        self._workers = WorkerPool(self._scratch, isolation)
        self._wake_r, self._wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._running = True
        self._last_sign = 0.0

    def run(self) -> None:
        """Serve until the caller goes; then leave no process and no file behind."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        try:
            self._caller.send(Greeting(os.getpid(), self._isolation.value))
            while self._running:
                self._turn()
        except (ChannelClosed, ChannelTimeout):
            self._running = False
        finally:
            self._shut_down()

    def _stop(self, *_: object) -> None:
        self._running = False

    def _turn(self) -> None:
        poller = select.poll()
        for fd in (self._caller.fileno(), self._wake_r, *self._owner_fds()):
            poller.register(fd, select.POLLIN)
        by_fd = {judge.channel.fileno(): judge for judge in self._judges.values()}
        for fd in by_fd:
            poller.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poller.poll(int(_TICK_S * 1000))}
        if self._caller_is_gone(ready):
            self._running = False
            return
        if self._wake_r in ready:
            _empty(self._wake_r)
        if self._caller.fileno() in ready:
            self._hear_caller()
        for fd, judge in by_fd.items():
            # Serving the caller may have lost it, and put another one in its place.
            if fd in ready and self._judges.get(judge.device) is judge:
                self._hear_judge(judge)
        self._reap()
        self._check_judges()
        self._give_a_sign()

    def _owner_fds(self) -> tuple[int, ...]:
        return () if self._caller_pidfd is None else (self._caller_pidfd,)

    def _caller_is_gone(self, ready: set[int]) -> bool:
        if self._caller_pidfd is not None:
            return self._caller_pidfd in ready
        return os.getppid() != self._caller_pid

    def _hear_caller(self) -> None:
        while (request := self._caller.poll()) is not None:
            if isinstance(request, Evaluate):
                self._headers.begin_for(request.code)
            judge = self._judges.get(request.device)
            is_new = judge is None
            if judge is None:
                judge = self._judges[request.device] = JudgeHandle.start(
                    request.device, self._isolation.value, self._inherited(), self._scratch.path
                )
            judge.pending.add(request.id)
            try:
                judge.channel.send(request)
                for _ in range(self._standby if is_new else 0):
                    self._offer_worker(judge)
            except (ChannelClosed, ChannelTimeout) as error:
                self._lose_judge(judge, str(error))

    def _offer_worker(self, judge: JudgeHandle) -> None:
        offered = self._workers.fork(judge.device, self._inherited())
        judge.workers.add(offered.worker_id)
        try:
            judge.channel.send(WorkerOffer(offered.worker_id, offered.pid), offered.fds)
        finally:
            for fd in offered.fds:
                os.close(fd)

    def _hear_judge(self, judge: JudgeHandle) -> None:
        judge.heard()
        try:
            while (message := judge.channel.poll()) is not None:
                if isinstance(message, WorkerTaken):
                    self._offer_worker(judge)
                elif isinstance(message, WorkerDone):
                    self._workers.kill(message.worker_id)
                elif isinstance(message, Progress):
                    judge.note_progress(message)
                elif isinstance(message, JudgeAlive):
                    continue
                else:
                    judge.answered(message.id)
                    self._answer(message)
        except (ChannelClosed, ChannelTimeout, FrameError) as error:
            if self._running:
                self._lose_judge(judge, str(error))

    def _reap(self) -> None:
        """Reap whatever has ended; kill what outlived the worker that started it."""
        ended_worker = False
        while (ended := _next_exit()) is not None:
            if self._workers.owns(ended):
                self._workers.reap(ended)
                ended_worker = True
                continue
            # Before the wait, while the pid cannot belong to anybody else.
            for judge in list(self._judges.values()):
                if judge.pid == ended:
                    self._lose_judge(judge, "its process ended")
            with contextlib.suppress(ChildProcessError):
                os.waitpid(ended, 0)
        if ended_worker:
            self._kill_strays()

    def _kill_strays(self) -> None:
        known = {judge.pid for judge in self._judges.values()} | self._workers.pids() | self._headers.pids()
        for pid in children_of(os.getpid()):
            if pid not in known:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _check_judges(self) -> None:
        for judge in list(self._judges.values()):
            if judge.is_overdue(_GRACE_S):
                self._lose_judge(judge, "it outlasted its own limits")

    def _give_a_sign(self) -> None:
        if time.monotonic() - self._last_sign > _SIGN_S:
            self._last_sign = time.monotonic()
            self._answer(Alive())

    def _lose_judge(self, judge: JudgeHandle, why: str) -> None:
        """A judge is gone or stuck: fail what it held, so that the caller can try again."""
        if self._judges.get(judge.device) is judge:
            del self._judges[judge.device]
        judge.kill()
        for worker_id in judge.workers:
            self._workers.kill(worker_id)
        for request_id in judge.pending:
            message = f"The judge of {judge.device} was lost: {why}. {judge.last_words()}".strip()
            self._answer(Failure(request_id, FailureCause.INTERNAL, message))

    def _answer(self, message: HostToCaller) -> None:
        """Send to the caller; one that does not read or is gone ends the host."""
        try:
            self._caller.send(message)
        except (ChannelClosed, ChannelTimeout):
            self._running = False

    def _inherited(self) -> Callable[[], None]:
        """What a forked child must undo of the host before it becomes something else."""
        host_pid = os.getpid()

        def undo() -> None:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            die_with_parent(host_pid)

        return undo

    def _shut_down(self) -> None:
        for judge in self._judges.values():
            judge.kill()
        self._workers.kill_all()
        self._headers.stop()
        deadline = time.monotonic() + _LAST_SWEEP_S
        while time.monotonic() < deadline:
            self._judges.clear()
            self._reap()
            self._kill_strays()
            if not children_of(os.getpid()):
                break
            time.sleep(0.01)
        self._scratch.remove()


def _next_exit() -> int | None:
    """Pid of a child that has ended, left as a zombie so that its group can still be killed by number."""
    try:
        result = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if result is None else result.si_pid


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _empty(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(fd, 4096):
            pass


def _import_everything() -> None:
    """Import now what judges and workers need, so that their forks start with it."""
    import encodings.idna  # noqa: F401

    import torch
    import torch.utils.cpp_extension
    import torch.utils.flop_counter
    import triton
    import triton.language

    import gym_kernel.evaluator.judge
    import gym_kernel.evaluator.worker  # noqa: F401

    if not triton.knobs.runtime.interpret:
        from gym_kernel.evaluator.triton_warmth import warm_triton

        warm_triton()
    if torch.cuda.is_initialized():
        raise RuntimeError(
            "Importing torch or warming Triton initialised CUDA, so forked processes could not use it."
        )


def _give_up(caller: socket.socket, scratch: HostScratch, cause: FailureCause, message: str) -> None:
    channel: Channel[Request] = Channel(caller, Request)
    channel.send(Failure(-1, cause, message))
    scratch.remove()


def main() -> None:
    """Entry point of the host process; started by the client, not by hand."""
    parser = argparse.ArgumentParser(prog="gym-kernel-host")
    parser.add_argument("--socket-fd", type=int, required=True)
    parser.add_argument("--caller-pid", type=int, required=True)
    parser.add_argument("--isolation", required=True)
    parser.add_argument("--standby", type=int, required=True)
    options = parser.parse_args()
    close_fds_except({0, 1, 2, options.socket_fd})
    caller = socket.socket(fileno=options.socket_fd)
    become_subreaper()
    set_undumpable()
    scratch = HostScratch()
    try:
        isolation = choose_isolation(options.isolation)
        scratch.become_temporary_folder()
        _import_everything()
    except IsolationUnavailable as error:
        _give_up(caller, scratch, FailureCause.TASK, str(error))
        return
    except Exception:
        _give_up(caller, scratch, FailureCause.INTERNAL, traceback.format_exc(limit=-3))
        return
    gc.collect()
    gc.freeze()
    Host(caller, options.caller_pid, scratch, isolation, options.standby).run()


if __name__ == "__main__":
    main()
