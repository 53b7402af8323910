"""The device lane: correctness and timing of one submission at a time.

A lock inside the judge orders its own evaluations; a file lock keeps the lane exclusive across unrelated host
processes of the same user. Whoever wants the lane goes through a turnstile, a second file lock, which one process at a
time holds while it waits: else a process that takes the lane again as soon as it has left it would starve all others.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Lane"]


class Lane:
    """Exclusive use of one device.

    Args:
        lock_file: File that every host process of this user locks for this device; the turnstile is a file beside it.
            Where they cannot be made, the lane is exclusive within this judge alone.
    """

    def __init__(self, lock_file: Path) -> None:
        self._lane_fd: int | None = None
        self._turnstile_fd: int | None = None
        with contextlib.suppress(OSError):
            lock_file.parent.mkdir(parents=True, exist_ok=True)
            self._turnstile_fd = _open(lock_file.with_suffix(".turnstile"))
            self._lane_fd = _open(lock_file)
        self._mutex = threading.Lock()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for the lane and keep it for the length of a ``with`` block.

        Every holder's stages are bounded, and the kernel drops the locks of a holder that dies, so
        this wait ends.
        """
        with self._mutex:
            self._enter()
            try:
                yield
            finally:
                if self._lane_fd is not None:
                    fcntl.flock(self._lane_fd, fcntl.LOCK_UN)

    def _enter(self) -> None:
        if self._lane_fd is None or self._turnstile_fd is None:
            return
        fcntl.flock(self._turnstile_fd, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._lane_fd, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._turnstile_fd, fcntl.LOCK_UN)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
