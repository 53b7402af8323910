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

import torch

from gym_kernel.errors import DeviceUnavailable, TaskError
from gym_kernel.evaluator.cache import cache_dir
from gym_kernel.evaluator.ceilings import cached
from gym_kernel.evaluator.clock_audit import CallOverhead
from gym_kernel.evaluator.device_facts import read_device_facts
from gym_kernel.evaluator.evaluation import evaluate
from gym_kernel.evaluator.framing import Channel, ChannelClosed, ChannelTimeout
from gym_kernel.evaluator.lane import Lane
from gym_kernel.evaluator.messages import (
    Brief,
    BriefingReady,
    Evaluate,
    Failure,
    FailureCause,
    HostToJudge,
    JudgeToHost,
    Progress,
    Stage,
    VerdictReady,
    WorkerDone,
    WorkerOffer,
    WorkerTaken,
)
from gym_kernel.evaluator.reference_bench import BenchCache
from gym_kernel.evaluator.worker_link import WorkerExited, WorkerLink, WorkerMisbehaved, WorkerTimeout
from gym_kernel.evaluator.worker_messages import Claim, Idle

__all__ = ["Judge"]

_MAX_CLAIM_BYTES = 256 << 10
_START_S = 120.0
_IDLE_CALL_S = 20.0
_IDLE_CALLS = 12


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
        self._stock: queue.SimpleQueue[WorkerLink] = queue.SimpleQueue()
        self._start_lock = threading.Lock()
        self._benches: BenchCache | None = None
        self._overhead = CallOverhead(self._idle_window_us)
        self._load_slots = threading.BoundedSemaphore(max(2, len(os.sched_getaffinity(0))))

    def run(self) -> None:
        """Read from the host until it closes the connection, then exit the process."""
        try:
            while True:
                self._hear(self._channel.receive())
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
        """Take a fresh worker from stock, and have the host warm another.

        Raises:
            queue.Empty: None came within ``timeout_s`` seconds.
        """
        link = self._stock.get(timeout=timeout_s)
        self.send(WorkerTaken(link.worker_id))
        return link

    def end_worker(self, link: WorkerLink) -> None:
        """Have the host kill a worker; returns at once."""
        self.send(WorkerDone(link.worker_id))

    def report(self, request_id: int, stage: Stage, limit_s: float) -> None:
        """Tell the host that a request entered a stage of at most ``limit_s`` seconds."""
        self.send(Progress(request_id, stage, limit_s))

    def _idle_window_us(self, spin_us: float) -> float:
        """Shortest idle call of a fresh worker behind a spin; the lane is held meanwhile.

        Raises:
            RuntimeError: No worker could go through it.
        """
        link = self.take_worker(_START_S)
        try:
            windows_us = []
            link.wait(_START_S)
            for _ in range(_IDLE_CALLS):
                started = time.perf_counter_ns()
                link.send(Idle(spin_us))
                link.wait(_IDLE_CALL_S)
                windows_us.append((time.perf_counter_ns() - started) / 1000)
            return min(windows_us)
        except (WorkerExited, WorkerTimeout, WorkerMisbehaved) as error:
            raise RuntimeError(f"A fresh worker could not be timed: {type(error).__name__}.") from error
        finally:
            self.end_worker(link)
            link.close()

    def _hear(self, message: HostToJudge) -> None:
        if isinstance(message, WorkerOffer):
            sock_fd, exit_fd, output_fd = self._channel.take_fds(3)
            channel: Channel[Claim] = Channel(
                socket.socket(fileno=sock_fd), Claim, max_frame_bytes=_MAX_CLAIM_BYTES
            )
            self._stock.put(WorkerLink(message.worker_id, message.pid, channel, exit_fd, output_fd))
            return
        work: Callable[[], JudgeToHost]
        if isinstance(message, Evaluate):
            request = message
            work = lambda: self._evaluate(request)
        else:
            brief = message
            work = lambda: self._brief(brief)
        threading.Thread(target=self._answer, args=(message.id, work), daemon=True).start()

    def _answer(self, request_id: int, work: Callable[[], JudgeToHost]) -> None:
        answer: JudgeToHost
        try:
            self.send(work())
            return
        except TaskError as error:
            answer = Failure(request_id, FailureCause.TASK, str(error))
        except DeviceUnavailable as error:
            answer = Failure(request_id, FailureCause.DEVICE, str(error))
        except Exception:
            answer = Failure(request_id, FailureCause.INTERNAL, traceback.format_exc(limit=-6))
        self.send(answer)

    def _brief(self, request: Brief) -> BriefingReady:
        self.send(Progress(request.id, Stage.PREPARING, _START_S))
        benches = self._start()
        with benches.lane.hold():
            return BriefingReady(request.id, benches.get(request.task).briefing(self._isolation))

    def _evaluate(self, request: Evaluate) -> VerdictReady:
        self.send(Progress(request.id, Stage.PREPARING, _START_S))
        benches = self._start()
        return VerdictReady(request.id, evaluate(request, benches, self, self._load_slots, self._overhead))

    def _start(self) -> BenchCache:
        """Wake the device at the first request."""
        with self._start_lock:
            if self._benches is None:
                device = torch.device(self._device_id)
                facts = read_device_facts(device)
                lane = Lane(cache_dir() / "locks" / f"{self._device_id.replace(':', '-')}.lock")
                with lane.hold():
                    ceilings = cached(facts)
                self._benches = BenchCache(facts, ceilings, lane)
            return self._benches
