"""How long a task's reference takes, and the copy that ends every call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch

from gym_kernel.evaluator.arena import view
from gym_kernel.evaluator.arena_pool import ArenaPool
from gym_kernel.evaluator.sampling import SamplingPlan
from gym_kernel.evaluator.stopwatch import Stopwatch, create_stopwatch
from gym_kernel.evaluator.timing import Timing
from gym_kernel.evaluator.worker_messages import TensorSlot

__all__ = ["time_copy", "time_reference"]

_COPIES = 5
_CPU_BATCHES = 5
_WARM_CALLS = 3


def time_copy(slots: Sequence[TensorSlot], size_bytes: int, arenas: ArenaPool, device: torch.device) -> float:
    """Median time of copying a call's outputs into an arena, in microseconds.

    Args:
        slots: The outputs' places in it.
        size_bytes: Size of the arena.
        arenas: Where it comes from.
        device: Device of both.
    """
    arena = arenas.acquire(size_bytes)
    targets = [view(arena.bytes, slot) for slot in slots]
    sources = [torch.zeros_like(target) for target in targets]
    stopwatch = create_stopwatch(device)

    def copy_all() -> None:
        for target, source in zip(targets, sources, strict=True):
            target.copy_(source)

    try:
        return median(stopwatch.time(copy_all, 0.0).elapsed_us for _ in range(_COPIES))
    finally:
        arenas.release(arena)


def time_reference(run: Callable[[], Any], device: torch.device) -> Timing:
    """Time a reference as submissions are timed.

    Args:
        run: One call of it.
        device: Where it computes.
    """
    stopwatch = create_stopwatch(device)
    # Threads of a CPU that have to be woken for each operator make it a hundred times slower, for a while.
    batches = 1 if device.type == "cuda" else _CPU_BATCHES
    return min((_timed(run, stopwatch, device) for _ in range(batches)), key=lambda t: t.median_us)


def _timed(run: Callable[[], Any], stopwatch: Stopwatch, device: torch.device) -> Timing:
    plan = SamplingPlan.for_device(device)
    spin_us = plan.spin_us
    for _ in range(_WARM_CALLS):
        launch_us = stopwatch.time(run, spin_us).launch_us
        spin_us = max(spin_us, 2 * launch_us) if plan.spin_us else 0.0
    samples: list[float] = []
    while plan.wants_more(samples):
        samples.append(stopwatch.time(run, spin_us).elapsed_us)
    return Timing(tuple(samples))
