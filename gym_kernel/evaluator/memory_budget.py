"""Memory that several submissions may take of a device at once, outside its lane."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["MemoryBudget"]


class MemoryBudget:
    """So many bytes, lent in parts.

    Args:
        total_bytes: All that there is to lend.
    """

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self._condition = threading.Condition()
        self._lent_bytes = 0

    @contextmanager
    def lend(self, size_bytes: int, patience_s: float) -> Iterator[int]:
        """Borrow for the length of a ``with`` block.

        Args:
            size_bytes: How much is wanted; more than there is at all becomes all of it.
            patience_s: How long to wait for it, in seconds.

        Yields:
            What was lent, in bytes: as much as was wanted, or 0 where it did not become free in time.
        """
        wanted_bytes = min(size_bytes, self.total_bytes)
        lent_bytes = wanted_bytes if self._take(wanted_bytes, patience_s) else 0
        try:
            yield lent_bytes
        finally:
            with self._condition:
                self._lent_bytes -= lent_bytes
                self._condition.notify_all()

    def _take(self, size_bytes: int, patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        with self._condition:
            while self._lent_bytes + size_bytes > self.total_bytes:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0 or not self._condition.wait(remaining_s):
                    return False
            self._lent_bytes += size_bytes
            return True
