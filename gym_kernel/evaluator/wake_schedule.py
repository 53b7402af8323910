"""When fresh workers wake.

Waking makes a GPU context, for a quarter of a second during which nothing may be timed (see
:mod:`gym_kernel.evaluator.quiet_gate`). While submissions are on the device, workers wake one by one: each as the
device changes hands, so that it is awake by the time that the next submission's values are checked. Many at once would
have it wait for all of them. On an idle device as many wake as may be in stock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["WakeSchedule"]

# The last one may be taken while the others wake.
_LOW_STOCK = 1


class WakeSchedule:
    """Lets fresh workers wait for their turn; used by many threads.

    Args:
        most_ready: See :meth:`allow`.
        idle_s: Seconds without a submission after which the device counts as idle.
    """

    def __init__(self, most_ready: int = 1, idle_s: float = 1.0) -> None:
        self._condition = threading.Condition()
        self._most_ready = most_ready
        self._idle_s = idle_s
        self._ready = 0
        self._takers = 0
        self._waking = 0
        self._on_device = 0
        self._left_at = time.monotonic()

    def allow(self, most_ready: int) -> None:
        """Set how many workers may be in stock; beyond that none wakes unless somebody waits for one."""
        with self._condition:
            self._most_ready = most_ready
            self._condition.notify_all()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until a fresh worker should wake, and have it wake for the length of a ``with`` block.

        As long as nobody needs it, the wait may be for ever.
        """
        with self._condition:
            while not self._is_time():
                self._condition.wait(self._until_idle_s())
            self._waking += 1
        try:
            yield
        finally:
            with self._condition:
                self._waking -= 1
                self._condition.notify_all()

    def _is_time(self) -> bool:
        if self._on_device and self._waking:
            return False
        if self._takers > 0 or self._ready == 0:
            return True
        if self._ready >= self._most_ready:
            return False
        return self._ready <= _LOW_STOCK or self._until_idle_s() == 0.0

    def _until_idle_s(self) -> float | None:
        """Seconds until the device counts as idle; 0 where it does, ``None`` where nobody knows."""
        if self._on_device or self._ready >= self._most_ready:
            return None
        return max(self._left_at + self._idle_s - time.monotonic(), 0.0)

    def add_ready(self) -> None:
        """Note that a worker is in stock."""
        with self._condition:
            self._ready += 1

    @contextmanager
    def taking(self) -> Iterator[None]:
        """Note that somebody waits for a worker, for the length of a ``with`` block."""
        with self._condition:
            self._takers += 1
            self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._takers -= 1

    def note_taken(self) -> None:
        """Note that a worker has left the stock."""
        with self._condition:
            self._ready -= 1
            self._condition.notify_all()

    @contextmanager
    def on_device(self) -> Iterator[None]:
        """Note that a submission has the device, or waits for it, for the length of a ``with`` block."""
        with self._condition:
            self._on_device += 1
        try:
            yield
        finally:
            with self._condition:
                self._on_device -= 1
                self._left_at = time.monotonic()
                self._condition.notify_all()
