"""What a device has room for: workers, compilations, memory outside its lane.

Every worker on a GPU holds a context there, waiting for the lane or not, and what the contexts take is lost to the
inputs and outputs of the submission that has the lane.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from gym_kernel.evaluator.compile_slots import compile_slots
from gym_kernel.evaluator.memory_budget import MemoryBudget

__all__ = ["Admission", "Places"]

# Measured on an H200 with torch and Triton loaded.
_CONTEXT_BYTES = 600 << 20
# What may go into contexts; the rest is for the tensors of one submission at a time.
_CONTEXTS_SHARE = 0.15
# What may stand in for inputs and outputs while kernels are compiled ahead of the lane.
_STAND_IN_SHARE = 0.2
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
        stand_in_bytes: Device memory that submissions may take to compile ahead, all together.
    """

    seats: int
    ready: int
    stand_in_bytes: int = 0

    @classmethod
    def for_memory(cls, memory_bytes: int) -> Admission:
        """Bounds for a GPU with so much memory: a 24 GB card has five seats and keeps one worker ready."""
        contexts = int(_CONTEXTS_SHARE * memory_bytes / _CONTEXT_BYTES)
        ready = max(1, min(_MOST_READY, contexts // 4))
        return cls(
            seats=max(2, min(_MOST_SEATS, contexts - ready)),
            ready=ready,
            stand_in_bytes=int(_STAND_IN_SHARE * memory_bytes),
        )

    @classmethod
    def for_cpu(cls) -> Admission:
        """Bounds for a CPU, where a worker is hardly more than a process."""
        return cls(seats=_CPU_SEATS, ready=_CPU_READY)


@dataclass(frozen=True)
class Places:
    """What the submissions of one judge take turns at.

    Attributes:
        seats: Held by a submission as long as it has a worker.
        load_slots: Held while a module is loaded and compiled.
        stand_ins: Device memory for compiling ahead.
    """

    seats: threading.Semaphore
    load_slots: threading.Semaphore
    stand_ins: MemoryBudget

    @classmethod
    def of(cls, admission: Admission) -> Places:
        """All of them free."""
        return cls(
            seats=threading.BoundedSemaphore(admission.seats),
            load_slots=threading.BoundedSemaphore(compile_slots()),
            stand_ins=MemoryBudget(admission.stand_in_bytes),
        )
