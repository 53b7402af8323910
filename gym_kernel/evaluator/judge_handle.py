"""A judge as its host sees it: a process, a channel, and the requests it has not answered."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from gym_kernel.evaluator.framing import Channel
from gym_kernel.evaluator.messages import JUDGE_SIGN_S, HostToJudge, JudgeToHost, Progress, Stage
from gym_kernel.evaluator.processes import close_fds_except

__all__ = ["JudgeHandle"]

_LOG_TAIL_CHARS = 1_500


class JudgeHandle:
    """One running judge. Made by :meth:`start`.

    Attributes:
        device: Device it owns.
        pid: Its process id.
        channel: Framed connection to it.
        workers: Numbers of the workers that were offered to it.
        pending: Ids of the requests that it has not answered.
    """

    def __init__(self, device: str, pid: int, channel: Channel[JudgeToHost], log: Path) -> None:
        self.device = device
        self.pid = pid
        self.channel = channel
        self.workers: set[int] = set()
        self.pending: set[int] = set()
        self._log = log
        self._due: dict[int, float] = {}
        self._last_heard = time.monotonic()

    @classmethod
    def start(cls, device: str, isolation: str, undo_host: Callable[[], None], folder: Path) -> JudgeHandle:
        """Fork a judge for ``device``; its own words of distress go to a log in ``folder``."""
        host_end, judge_end = socket.socketpair()
        log = folder / f"judge-{device.replace(':', '-')}.log"
        pid = os.fork()
        if pid == 0:
            _become_judge(undo_host, judge_end, log, device, isolation)
        judge_end.close()
        return cls(device, pid, Channel(host_end, JudgeToHost, max_frame_bytes=8 << 20), log)

    def heard(self) -> None:
        """Note a sign of life."""
        self._last_heard = time.monotonic()

    def note_progress(self, progress: Progress) -> None:
        """Remember by when the request must have moved on."""
        if progress.stage is Stage.QUEUED or progress.stage is Stage.WAITING_FOR_DEVICE:
            # A queue is as long as what stands in it; each of those has a limit of its own.
            self._due.pop(progress.id, None)
        else:
            self._due[progress.id] = time.monotonic() + progress.limit_s

    def answered(self, request_id: int) -> None:
        """Forget a request that has its answer."""
        self.pending.discard(request_id)
        self._due.pop(request_id, None)

    def is_overdue(self, grace_s: float) -> bool:
        """Whether the judge is silent, or some request is past its stage's limit, for more than ``grace_s`` seconds."""
        now = time.monotonic()
        if now - self._last_heard > grace_s + JUDGE_SIGN_S:
            return True
        return any(now > due + grace_s for due in self._due.values())

    def kill(self) -> None:
        """Kill the process and close the channel. The host's loop reaps it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.channel.close()

    def last_words(self) -> str:
        """End of what the judge wrote to its log."""
        try:
            return self._log.read_text(errors="backslashreplace")[-_LOG_TAIL_CHARS:].strip()
        except FileNotFoundError:
            return ""


def _become_judge(
    undo_host: Callable[[], None], sock: socket.socket, log: Path, device: str, isolation: str
) -> None:
    import sys
    import traceback

    from gym_kernel.evaluator.judge import Judge

    try:
        undo_host()
        log_fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        close_fds_except({0, 1, 2, sock.fileno()})
        Judge(Channel(sock, HostToJudge, max_frame_bytes=8 << 20), device, isolation).run()
    except BaseException:
        traceback.print_exc(file=sys.stderr)
        sys.stderr.flush()
    finally:
        os._exit(70)
