"""Keeping the device quiet while a kernel is timed.

A process that makes or loses its GPU context takes locks inside the driver; on an H200 that stretched a 3 ms kernel
beside it by 2 % and a whole call by almost a millisecond. So workers wake and die outside the timed stages.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["QuietGate"]


class QuietGate:
    """Many may be noisy at once, or one may have quiet; who wants quiet goes first."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._noisy = 0
        self._quiet = False
        self._wanted = 0

    def begin_noise(self) -> None:
        """Wait until nobody has or wants quiet. Every quiet stage has a limit, so the wait ends."""
        with self._condition:
            self._condition.wait_for(lambda: not self._quiet and not self._wanted)
            self._noisy += 1

    def end_noise(self) -> None:
        """Be done with what :meth:`begin_noise` announced."""
        with self._condition:
            self._noisy -= 1
            self._condition.notify_all()

    @contextmanager
    def noise(self) -> Iterator[None]:
        """Be noisy for the length of a ``with`` block."""
        self.begin_noise()
        try:
            yield
        finally:
            self.end_noise()

    def wait_for_silence(self, limit_s: float) -> None:
        """Wait until nobody is noisy, but not for longer than ``limit_s`` seconds."""
        with self._condition:
            self._condition.wait_for(lambda: not self._noisy, limit_s)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Have quiet for the length of a ``with`` block. Whoever is noisy has a deadline of its own."""
        with self._condition:
            self._wanted += 1
            self._condition.wait_for(lambda: not self._quiet and not self._noisy)
            self._wanted -= 1
            self._quiet = True
        try:
            yield
        finally:
            with self._condition:
                self._quiet = False
                self._condition.notify_all()
