"""How many workers a device has room for.

Every worker on a GPU holds a context there, waiting for the lane or not, and what the contexts take is lost to the
inputs and outputs of the submission that has the lane.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Admission"]

# Measured on an H200 with torch and Triton loaded.
_CONTEXT_BYTES = 600 << 20
# What may go into contexts; the rest is for the tensors of one submission at a time.
_CONTEXTS_SHARE = 0.15
_MOST_SEATS = 32
_MOST_READY = 8
_CPU_SEATS = 16
_CPU_READY = 2


@dataclass(frozen=True)
class Admission:
    """Bounds of one judge.

    Attributes:
        seats: Submissions that may have a worker at the same time; others wait for one to end.
        ready: Workers that wait awake for a submission.
    """

    seats: int
    ready: int

    @classmethod
    def for_memory(cls, memory_bytes: int) -> Admission:
        """Bounds for a GPU with so much memory: a 24 GB card has five seats and keeps one worker ready."""
        contexts = int(_CONTEXTS_SHARE * memory_bytes / _CONTEXT_BYTES)
        ready = max(1, min(_MOST_READY, contexts // 4))
        return cls(seats=max(2, min(_MOST_SEATS, contexts - ready)), ready=ready)

    @classmethod
    def for_cpu(cls) -> Admission:
        """Bounds for a CPU, where a worker is hardly more than a process."""
        return cls(seats=_CPU_SEATS, ready=_CPU_READY)
