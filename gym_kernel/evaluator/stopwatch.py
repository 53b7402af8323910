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
_LEAST_SPIN_US = 60.0
_MOST_SPIN_US = 20_000.0
_LEAST_FLUSH_BYTES = 64 << 20


@dataclass(frozen=True)
class TimedCall(Generic[Result]):
    """What a call returned, and how long it took in microseconds."""

    result: Result
    elapsed_us: float


class Stopwatch(Protocol):
    """Times calls on one device."""

    def time(self, call: Callable[[], Result]) -> TimedCall[Result]:
        """Run ``call`` once and time it."""


class CpuStopwatch:
    """Times host code with the monotonic performance counter."""

    def time(self, call: Callable[[], Result]) -> TimedCall[Result]:
        """Run ``call`` once and time it."""
        started = time.perf_counter_ns()
        result = call()
        elapsed_ns = time.perf_counter_ns() - started
        return TimedCall(result, max(elapsed_ns, 1) / 1000)


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
        self._spin_us = 500.0

    def time(self, call: Callable[[], Result]) -> TimedCall[Result]:
        """Run ``call`` once on a cold L2 and time it between two events."""
        torch.cuda.synchronize(self._device)
        self._flush.zero_()
        torch.cuda._sleep(int(self._spin_us * _CYCLES_PER_US))
        self._start.record()
        launched = time.perf_counter_ns()
        result = call()
        launch_us = (time.perf_counter_ns() - launched) / 1000
        self._end.record()
        torch.cuda.synchronize(self._device)
        # The next spin must outlast the launches of a call that looks like this one.
        self._spin_us = min(max(2 * launch_us, _LEAST_SPIN_US), _MOST_SPIN_US)
        return TimedCall(result, max(self._start.elapsed_time(self._end) * 1000, 1e-3))


def create_stopwatch(device: torch.device) -> Stopwatch:
    """The stopwatch for a device."""
    return CpuStopwatch() if device.type == "cpu" else CudaStopwatch(device)
