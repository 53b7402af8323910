"""One timed call of a forward pass, on either kind of device.

On a GPU the L2 is flushed first, the launch is queued behind a spin that outlasts the host's share of it (so that
a busy host cannot stretch the interval), and the call returns after a device-wide synchronisation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch

__all__ = ["CpuStopwatch", "CudaStopwatch", "Stopwatch", "TimedCall", "create_stopwatch"]

Result = TypeVar("Result")

_CYCLES_PER_US = 2_000  # upper bound of an SM clock in cycles per microsecond
_LEAST_FLUSH_BYTES = 64 << 20

# Bound now, before a submission can put its own in their place.
_now_ns = time.perf_counter_ns
_synchronize = torch.cuda.synchronize
_spin = torch.cuda._sleep


@dataclass(frozen=True)
class TimedCall(Generic[Result]):
    """What a call returned, and how long it took.

    Attributes:
        result: Whatever the call returned.
        elapsed_us: Time of the work itself, in microseconds.
        launch_us: Host time until the call returned, in microseconds.
    """

    result: Result
    elapsed_us: float
    launch_us: float


class Stopwatch(Protocol):
    """Times calls on one device."""

    def time(self, call: Callable[[], Result], spin_us: float) -> TimedCall[Result]:
        """Run ``call`` once and time it, on a GPU behind a spin of ``spin_us`` microseconds."""


class CpuStopwatch:
    """Times host code with the monotonic performance counter."""

    def time(self, call: Callable[[], Result], spin_us: float) -> TimedCall[Result]:
        """Run ``call`` once and time it; there is nothing to queue, so there is no spin."""
        started = _now_ns()
        result = call()
        elapsed_us = max(_now_ns() - started, 1) / 1000
        return TimedCall(result, elapsed_us, elapsed_us)


class CudaStopwatch:
    """Times device work with CUDA events behind a spin.

    Args:
        device: The GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        self._flush = torch.empty(max(2 * l2_bytes, _LEAST_FLUSH_BYTES), dtype=torch.uint8, device=device)
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)
        self._elapsed_ms = self._start.elapsed_time
        self._reset_persisting_l2 = _persisting_l2_reset()

    def time(self, call: Callable[[], Result], spin_us: float) -> TimedCall[Result]:
        """Run ``call`` once on a cold L2 and time it between two events."""
        _synchronize(self._device)
        self._reset_persisting_l2()
        self._flush.zero_()
        _spin(int(spin_us * _CYCLES_PER_US))
        self._start.record()
        launched = _now_ns()
        result = call()
        launch_us = (_now_ns() - launched) / 1000
        self._end.record()
        # A mark that a profiler sees: kernels that outlast it were on streams that the call did not join.
        _spin(1)
        _synchronize(self._device)
        return TimedCall(result, max(self._elapsed_ms(self._end) * 1000, 1e-3), launch_us)


def create_stopwatch(device: torch.device) -> Stopwatch:
    """The stopwatch for a device."""
    return CpuStopwatch() if device.type == "cpu" else CudaStopwatch(device)


def _persisting_l2_reset() -> Callable[[], object]:
    """What gives lines that were marked as persisting back to the L2; they would survive a flush."""
    from cuda.bindings import driver

    return driver.cuCtxResetPersistingL2Cache
