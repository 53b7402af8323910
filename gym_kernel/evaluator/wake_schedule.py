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
    """Lets fresh workers wait for their turn; used by many threads."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._ready = 0
        self._takers = 0
        self._on_device = 0

    def wait_for_turn(self) -> None:
        """Wait until a fresh worker should wake.

        Whoever is on the device is bounded, so the wait ends.
        """
        with self._condition:
            self._condition.wait_for(lambda: not self._on_device or self._ready == 0 or self._takers > 0)

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
