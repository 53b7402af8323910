"""The judge: trusted, long-lived, one for each device.

Its main thread reads requests and fresh workers; every request runs on a thread of its own, so that several
submissions compile at once while the lane lets one at a time onto the device.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import torch

from gym_kernel.errors import DeviceUnavailable, TaskError
from gym_kernel.evaluator.admission import Admission, Places
from gym_kernel.evaluator.bench_cache import BenchCache
from gym_kernel.evaluator.cache import cache_dir
from gym_kernel.evaluator.ceilings import cached
from gym_kernel.evaluator.clock_audit import CallOverhead
from gym_kernel.evaluator.device_facts import lock_name, read_device_facts
from gym_kernel.evaluator.evaluation import Evaluation, WorkerUnavailable
from gym_kernel.evaluator.framing import Channel, ChannelClosed, ChannelTimeout
from gym_kernel.evaluator.lane import Lane
from gym_kernel.evaluator.messages import (
    JUDGE_SIGN_S,
    Brief,
    BriefingReady,
    Evaluate,
    Failure,
    FailureCause,
    HostToJudge,
    JudgeAlive,
    JudgeToHost,
    Progress,
    Stage,
    VerdictReady,
    WorkerDone,
    WorkerOffer,
    WorkerTaken,
)
from gym_kernel.evaluator.own_precision import compute_as_written
from gym_kernel.evaluator.quiet_gate import QuietGate
from gym_kernel.evaluator.wake_schedule import WakeSchedule
from gym_kernel.evaluator.worker_link import WorkerExited, WorkerLink, WorkerMisbehaved, WorkerTimeout
from gym_kernel.evaluator.worker_messages import Awake, Claim, Fenced, Idle, Ready, Wake

__all__ = ["Judge"]

_MAX_CLAIM_BYTES = 256 << 10
_START_S = 120.0
_IDLE_CALL_S = 20.0
_IDLE_CALLS = 12
_TOUCHED_BYTES = 256 << 20
_LAST_WORDS = 500


@dataclass(frozen=True)
class _FailedStart:
    """A worker that did not become ready."""

    worker_id: int
    problem: str


class Judge:
    """Serves the requests for one device until its host goes.

    Args:
        channel: Framed connection to the host.
        device: Device id.
        isolation: Tier that this host's workers enter.
    """

    def __init__(self, channel: Channel[HostToJudge], device: str, isolation: str) -> None:
        self._channel = channel
        self._device_id = device
        self._isolation = isolation
        self._send_lock = threading.Lock()
        self._stock: queue.SimpleQueue[WorkerLink | _FailedStart] = queue.SimpleQueue()
        self.gate = QuietGate()
        self.wakes = WakeSchedule()
        self._start_lock = threading.Lock()
        self._benches: BenchCache | None = None
        self._pacemaker: WorkerLink | None = None
        self._pacemaker_lock = threading.Lock()
        self._overhead = CallOverhead(self._idle_window_us)
        self._places: Places | None = None

    def run(self) -> None:
        """Read from the host until it closes the connection, then exit the process."""
        try:
            while True:
                try:
                    self._hear(self._channel.receive(JUDGE_SIGN_S))
                except ChannelTimeout:
                    self.send(JudgeAlive())
        except ChannelClosed:
            # Request threads hold device work that nobody will read any more.
            os._exit(0)

    def send(self, message: JudgeToHost) -> None:
        """Send to the host from any thread; a host that is gone ends the process."""
        with self._send_lock:
            try:
                self._channel.send(message)
            except (ChannelClosed, ChannelTimeout):
                os._exit(0)

    def take_worker(self, timeout_s: float) -> WorkerLink:
        """Take a worker that is ready from stock, and have the host warm another.

        Raises:
            WorkerUnavailable: None became ready within ``timeout_s`` seconds, or the next one failed to.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                taken = self._take_from_stock(max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                raise WorkerUnavailable(f"none became ready within {timeout_s:.0f} s") from None
            self.wakes.note_taken()
            self.send(WorkerTaken(taken.worker_id))
            if isinstance(taken, _FailedStart):
                raise WorkerUnavailable(taken.problem)
            if not taken.is_gone():
                return taken
            # Killed while it waited, by whatever kills processes on this machine; no submission has seen it.
            self.end_worker(taken)
            taken.close()

    def _take_from_stock(self, timeout_s: float) -> WorkerLink | _FailedStart:
        with suppress(queue.Empty):
            return self._stock.get_nowait()
        with self.wakes.taking():
            return self._stock.get(timeout=timeout_s)

    def end_worker(self, link: WorkerLink) -> None:
        """Have the host kill a worker; returns at once."""
        self.send(WorkerDone(link.worker_id))

    def report(self, request_id: int, stage: Stage, limit_s: float) -> None:
        """Tell the host that a request entered a stage of at most ``limit_s`` seconds."""
        self.send(Progress(request_id, stage, limit_s))

    def _idle_window_us(self, spin_us: float) -> float:
        """Shortest idle call of the pacemaker behind a spin; the lane is held meanwhile.

        Raises:
            RuntimeError: It is gone; the next request takes another one.
        """
        with self._pacemaker_lock:
            link = self._pacemaker
            if link is None:
                raise RuntimeError("There is no pacemaker to measure the cost of a call with.")
            windows_us = []
            try:
                for _ in range(_IDLE_CALLS):
                    self._touch_device()
                    started = time.perf_counter_ns()
                    link.send(Idle(spin_us))
                    link.wait(_IDLE_CALL_S)
                    windows_us.append((time.perf_counter_ns() - started) / 1000)
                    link.wait(_IDLE_CALL_S)
            except (WorkerExited, WorkerTimeout, WorkerMisbehaved) as error:
                self._pacemaker = None
                self.end_worker(link)
                link.close()
                raise RuntimeError(f"The pacemaker was lost: {type(error).__name__}.") from error
            return min(windows_us)

    def _touch_device(self) -> None:
        """Work on the device first, as before every real call: changing from one process to another takes time."""
        if self._device_id == "cpu":
            return
        device = torch.device(self._device_id)
        torch.full((_TOUCHED_BYTES,), 1, dtype=torch.uint8, device=device)
        torch.cuda.synchronize(device)

    def _ensure_pacemaker(self) -> None:
        """Have a worker that never sees a submission; it goes through the motions of calls without one.

        It is taken here, and not when it is needed, because no worker can wake while a kernel is timed.
        """
        with self._pacemaker_lock:
            if self._pacemaker is None:
                self._pacemaker = self.take_worker(_START_S)

    def _hear(self, message: HostToJudge) -> None:
        if isinstance(message, WorkerOffer):
            sock_fd, exit_fd, output_fd = self._channel.take_fds(3)
            channel: Channel[Claim] = Channel(
                socket.socket(fileno=sock_fd), Claim, max_frame_bytes=_MAX_CLAIM_BYTES
            )
            link = WorkerLink(message.worker_id, message.pid, channel, exit_fd, output_fd)
            threading.Thread(target=self._nurse, args=(link,), daemon=True).start()
            return
        work: Callable[[ExitStack], JudgeToHost]
        if isinstance(message, Evaluate):
            request = message
            work = lambda afterwards: self._evaluate(request, afterwards)
        else:
            brief = message
            work = lambda _: self._brief(brief)
        threading.Thread(target=self._answer, args=(message.id, work), daemon=True).start()

    def _nurse(self, link: WorkerLink) -> None:
        """See a new worker through its start, while nothing is timed, and put it in stock."""
        try:
            fenced = link.wait(_START_S)
            with self.wakes.turn():
                with self.gate.noise():
                    link.send(Wake())
                    awake = link.wait(_START_S)
                ready = link.wait(_START_S)
            if not (isinstance(fenced, Fenced) and isinstance(awake, Awake) and isinstance(ready, Ready)):
                begun = ", ".join(type(claim).__name__ for claim in (fenced, awake, ready))
                raise WorkerMisbehaved(f"it began with {begun}")
        except (WorkerExited, WorkerTimeout, WorkerMisbehaved) as error:
            problem = f"{type(error).__name__}: {error} {link.output()[-_LAST_WORDS:]}".strip()
            self.end_worker(link)
            link.close()
            self._add_to_stock(_FailedStart(link.worker_id, problem))
            return
        link.isolation = fenced.isolation
        link.forget_output()
        self._add_to_stock(link)

    def _add_to_stock(self, worker: WorkerLink | _FailedStart) -> None:
        self.wakes.add_ready()
        self._stock.put(worker)

    def _answer(self, request_id: int, work: Callable[[ExitStack], JudgeToHost]) -> None:
        answer: JudgeToHost
        try:
            with ExitStack() as afterwards:
                self.send(work(afterwards))
                return
        except TaskError as error:
            answer = Failure(request_id, FailureCause.TASK, str(error))
        except DeviceUnavailable as error:
            answer = Failure(request_id, FailureCause.DEVICE, str(error))
        except BaseException:
            # Whoever asked waits for an answer, whatever ends this thread.
            answer = Failure(request_id, FailureCause.INTERNAL, traceback.format_exc(limit=-6))
        self.send(answer)

    def _brief(self, request: Brief) -> BriefingReady:
        self.send(Progress(request.id, Stage.PREPARING, _START_S))
        benches = self._start()
        with benches.lane.hold(), self.gate.quiet():
            return BriefingReady(request.id, benches.get(request.task).briefing(self._isolation))

    def _evaluate(self, request: Evaluate, afterwards: ExitStack) -> VerdictReady:
        self.send(Progress(request.id, Stage.PREPARING, _START_S))
        benches = self._start()
        self._ensure_pacemaker()
        assert self._places is not None, "The device is awake."
        evaluation = Evaluation(request, benches, self, self._places, self._overhead)
        return VerdictReady(request.id, evaluation.run(afterwards))

    def _start(self) -> BenchCache:
        """Wake the device at the first request, and make it the current one of this thread."""
        device = torch.device(self._device_id)
        if device.type == "cuda":
            torch.cuda.set_device(device)
        with self._start_lock:
            if self._benches is None:
                compute_as_written()
                facts = read_device_facts(device)
                lane = Lane(cache_dir() / "locks" / f"{lock_name(device)}.lock")
                with lane.hold():
                    ceilings = cached(facts)
                admission = Admission.for_memory(facts.memory_bytes) if facts.is_cuda else Admission.for_cpu()
                self._places = Places.of(admission)
                self.wakes.allow(admission.ready)
                self._benches = BenchCache(facts, ceilings, lane)
            return self._benches
