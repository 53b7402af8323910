"""The judge's end of a worker: orders out, claims in, and three ways for a wait to end."""

from __future__ import annotations

import os
import select
import struct
import time

import msgspec

from gym_kernel.evaluator.framing import Channel, ChannelClosed, FrameError
from gym_kernel.evaluator.processes import close_fds
from gym_kernel.evaluator.worker_messages import Claim

__all__ = ["WorkerExited", "WorkerLink", "WorkerMisbehaved", "WorkerTimeout"]

_HEAD_BYTES = 3_000
_TAIL_BYTES = 3_000
_EXIT = struct.Struct("=i")
_REPORT_WAIT_S = 5.0


class WorkerExited(Exception):
    """The worker's process ended.

    Attributes:
        status: Wait status, or ``None`` where it was not learnt.
    """

    def __init__(self, status: int | None) -> None:
        super().__init__("The worker's process ended.")
        self.status = status


class WorkerTimeout(Exception):
    """The worker did not answer in time."""


class WorkerMisbehaved(Exception):
    """The worker sent something outside the vocabulary."""


class WorkerLink:
    """A worker as its judge sees it.

    Args:
        worker_id: The host's number for it.
        pid: Its process id, as the host sees it.
        channel: Framed connection to it.
        exit_fd: Pipe on which the host reports the wait status.
        output_fd: Pipe with the submission's stdout and stderr.

    Attributes:
        isolation: Tier that it has entered, once it is known.
    """

    def __init__(
        self, worker_id: int, pid: int, channel: Channel[Claim], exit_fd: int, output_fd: int
    ) -> None:
        self.worker_id = worker_id
        self.pid = pid
        self.isolation = ""
        self._channel = channel
        self._exit_fd = exit_fd
        self._output_fd = output_fd
        self._head = bytearray()
        self._tail = bytearray()
        self._output_bytes = 0
        self._output_open = True
        os.set_blocking(output_fd, False)

    def send(self, order: msgspec.Struct, fds: tuple[int, ...] = ()) -> None:
        """Send an order.

        Raises:
            WorkerExited: The worker is gone.
        """
        try:
            self._channel.send(order, fds)
        except (ChannelClosed, TimeoutError):
            raise WorkerExited(self._exit_status()) from None

    def wait(self, limit_s: float) -> Claim:
        """Wait for a claim, the process's end or the limit, whichever comes first.

        Raises:
            WorkerExited: The process ended without a claim.
            WorkerTimeout: ``limit_s`` seconds passed.
            WorkerMisbehaved: What came is not a claim.
        """
        deadline = time.monotonic() + limit_s
        while True:
            try:
                claim = self._channel.poll()
            except ChannelClosed:
                raise WorkerExited(self._exit_status()) from None
            except FrameError as error:
                raise WorkerMisbehaved(str(error)) from error
            if claim is not None:
                self._drain()
                return claim
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                self._drain()
                raise WorkerTimeout
            self._wait_for_anything(remaining)

    def output(self) -> str:
        """What the submission has printed so far: head and tail, with the middle counted."""
        self._drain()
        skipped = self._output_bytes - len(self._head) - len(self._tail)
        middle = f"\n... {skipped} bytes left out ...\n".encode() if skipped > 0 else b""
        return (bytes(self._head) + middle + bytes(self._tail)).decode("utf-8", "backslashreplace").strip()

    def forget_output(self) -> None:
        """Drop what was printed before the submission came."""
        self._drain()
        self._head.clear()
        self._tail.clear()
        self._output_bytes = 0

    def wait_for_end(self, limit_s: float) -> bool:
        """Wait until the host has reaped the process; returns whether it did within the limit."""
        poller = select.poll()
        poller.register(self._exit_fd, select.POLLIN)
        return bool(poller.poll(int(limit_s * 1000)))

    def is_gone(self) -> bool:
        """Whether the process has ended or closed its end, as far as is known by now."""
        poller = select.poll()
        poller.register(self._exit_fd, select.POLLIN)
        poller.register(self._channel.fileno(), 0)
        return bool(poller.poll(0))

    def close(self) -> None:
        """Close this end of everything."""
        self._channel.close()
        close_fds((self._exit_fd, self._output_fd))

    def _wait_for_anything(self, timeout_s: float) -> None:
        poller = select.poll()
        poller.register(self._channel.fileno(), select.POLLIN)
        poller.register(self._exit_fd, select.POLLIN)
        if self._output_open:
            poller.register(self._output_fd, select.POLLIN)
        ready = {fd for fd, _ in poller.poll(int(timeout_s * 1000) + 1)}
        if self._output_fd in ready:
            self._drain()
        # A last claim may have been sent before the end, so the channel is emptied first.
        if self._exit_fd in ready and self._channel.fileno() not in ready:
            raise WorkerExited(self._exit_status())

    def _exit_status(self) -> int | None:
        poller = select.poll()
        poller.register(self._exit_fd, select.POLLIN)
        if not poller.poll(int(_REPORT_WAIT_S * 1000)):
            return None
        report = os.read(self._exit_fd, _EXIT.size)
        return _EXIT.unpack(report)[0] if len(report) == _EXIT.size else None

    def _drain(self) -> None:
        # Bounded, so that a submission that never stops printing cannot keep the judge here.
        for _ in range(256):
            if not self._output_open:
                return
            try:
                chunk = os.read(self._output_fd, 1 << 16)
            except BlockingIOError:
                return
            if not chunk:
                self._output_open = False
                return
            self._keep(chunk)

    def _keep(self, chunk: bytes) -> None:
        self._output_bytes += len(chunk)
        room = _HEAD_BYTES - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[max(room, 0) :]
        if len(self._tail) > _TAIL_BYTES:
            del self._tail[:-_TAIL_BYTES]
