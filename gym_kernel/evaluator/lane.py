"""The device lane: correctness and timing of one submission at a time.

A lock inside the judge orders its own evaluations; a file lock keeps the lane exclusive across unrelated host
processes of the same user.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Lane"]

_RETRY_S = 0.002


class Lane:
    """Exclusive use of one device.

    Args:
        lock_file: File that every host process of this user locks for this device. Where it cannot be made, the lane
            is exclusive within this judge alone.
    """

    def __init__(self, lock_file: Path) -> None:
        self._fd: int | None = None
        with contextlib.suppress(OSError):
            lock_file.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._mutex = threading.Lock()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for the lane and keep it for the length of a ``with`` block.

        Every holder's stages are bounded, and the kernel drops the lock of a holder that dies, so
        this wait ends.
        """
        with self._mutex:
            self._lock_file()
            try:
                yield
            finally:
                if self._fd is not None:
                    fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _lock_file(self) -> None:
        while self._fd is not None:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(_RETRY_S)
