"""When fresh workers wake.

Waking makes a GPU context, for a third of a second during which nothing may be timed (see
:mod:`gym_kernel.evaluator.quiet_gate`). Workers that wake together take hardly longer than one. So while submissions
are on the device, fresh workers wait until those in stock are used up, and then wake all at once; on an idle device
they wake as they come.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["WakeSchedule"]


class WakeSchedule:
    """Lets fresh workers wait for their turn; used by many threads.

    Args:
        most_ready: See :meth:`allow`.
    """

    def __init__(self, most_ready: int = 1) -> None:
        self._condition = threading.Condition()
        self._most_ready = most_ready
        self._ready = 0
        self._takers = 0
        self._on_device = 0

    def allow(self, most_ready: int) -> None:
        """Set how many workers may be in stock; beyond that none wakes unless somebody waits for one."""
        with self._condition:
            self._most_ready = most_ready
            self._condition.notify_all()

    def wait_for_turn(self) -> None:
        """Wait until a fresh worker should wake.

        Whoever is on the device is bounded, so the wait ends.
        """
        with self._condition:
            self._condition.wait_for(self._is_time)

    def _is_time(self) -> bool:
        if self._takers > 0 or self._ready == 0:
            return True
        return not self._on_device and self._ready < self._most_ready

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
                self._condition.notify_all()
