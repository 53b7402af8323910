"""How long each stage of an evaluation may take."""

from __future__ import annotations

import time
from dataclasses import dataclass

__all__ = ["Budget", "StageLimits"]


@dataclass(frozen=True)
class StageLimits:
    """Limits by stage, in seconds.

    Attributes:
        worker_s: Until a fresh worker is ready.
        load_s: Import, construction, compilation.
        call_s: One forward call.
        checking_s: All hidden-seed calls together.
        timing_s: All timed calls together.
    """

    worker_s: float = 90.0
    load_s: float = 240.0
    call_s: float = 60.0
    checking_s: float = 120.0
    timing_s: float = 60.0


class Budget:
    """Time that one submission may spend on its own account; waiting in queues is not charged.

    Args:
        total_s: The whole of it, in seconds.
    """

    def __init__(self, total_s: float) -> None:
        self._left_s = total_s
        self.total_s = total_s

    def allowance(self, limit_s: float) -> float:
        """What the next wait may take: ``limit_s``, or less where less is left."""
        return max(min(limit_s, self._left_s), 0.0)

    def charge(self, started: float) -> None:
        """Charge the time since ``started`` (of ``time.monotonic()``)."""
        self._left_s -= time.monotonic() - started
