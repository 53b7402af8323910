"""The judge's own clock as a bound on what a worker claims.

A call is under way, by the judge's clock, for the exchange of two frames, the flush, the spin and the work. All but
the work is measured with a fresh worker that goes through the motions of a call without one (:class:`CallOverhead`).
What neither that nor the claim explains, in the call where it is least, is time that the worker has kept quiet about.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from gym_kernel.evaluator.worker_messages import Called

__all__ = ["CallOverhead", "ClockAudit"]

# Below these the difference of two clocks in two processes says nothing. On an H200 the least that 85 honest kernels
# left unexplained was up to 1.8 ms: the GPU changes from the judge's context to the worker's, and the worker's caches
# are cold. On a CPU every exchange may have to wait for a core.
_SLACK_US = 2_500.0
_SLACK_FRACTION = 0.1
_KERNEL_SLACK_US = 15.0
_CPU_SLACK_US = 6_000.0  # one and a half time slices of a busy scheduler
_CPU_CREDIT_US = 1_500.0
_CPU_LONG_US = 10_000.0
# Host work longer than the last is no launch overhead any more, and counts.
_SPINS_US = (0.0, 250.0, 1_000.0, 4_000.0)


class CallOverhead:
    """What a call costs beside the submission's own work, for each length of spin.

    Args:
        measure: Returns the shortest window of an idle call behind a spin, both in microseconds.
    """

    def __init__(self, measure: Callable[[float], float]) -> None:
        self._measure = measure
        self._known: dict[float, float] = {}

    def of(self, spin_us: float) -> float:
        """Overhead of a call behind this spin, in microseconds; measured at its first use."""
        if spin_us not in self._known:
            self._known[spin_us] = self._measure(spin_us)
        return self._known[spin_us]

    def remeasure(self, spin_us: float) -> None:
        """Measure once more, as the machine is now."""
        self._known[spin_us] = self._measure(spin_us)


class ClockAudit:
    """Compares a run's claims with the judge's clock.

    Args:
        overhead: See :class:`CallOverhead`.
        spin_us: Spin of the first call, in microseconds; 0 for devices without one.
        copy_us: What copying the outputs takes, in microseconds.
    """

    def __init__(self, overhead: CallOverhead, spin_us: float, copy_us: float) -> None:
        self._overhead = overhead
        self._copy_us = copy_us
        self._kernels_us: list[float] = []
        self._spins = _SPINS_US[1:] if spin_us else _SPINS_US[:1]
        self.spin_us = self._spins[0]
        self._claims_us: list[float] = []
        self._unexplained_us: list[float] = []

    def add(self, called: Called, window_us: float) -> None:
        """Note a call, and choose the next spin so that it outlasts launches like this one's."""
        beside_us = self._overhead.of(self.spin_us) + self._copy_us
        self._claims_us.append(called.elapsed_us)
        self._unexplained_us.append(window_us - called.elapsed_us - beside_us)
        wanted = 1.5 * called.launch_us
        self.spin_us = next((spin for spin in self._spins if spin >= wanted), self._spins[-1])

    def add_kernels(self, kernels_us: float) -> None:
        """Note how long a profiled call's kernels took by CUPTI, in microseconds; 0 where it saw none.

        It is a second clock, by which the claims must hold as well.
        """
        if kernels_us:
            self._kernels_us.append(kernels_us)

    def start_again(self) -> None:
        """Forget what was noted, and measure the overhead anew."""
        self._overhead.remeasure(self.spin_us)
        self._claims_us.clear()
        self._unexplained_us.clear()

    def doubt(self) -> str:
        """Why the claims cannot be true; empty where they can."""
        claimed_us = median(self._claims_us)
        unexplained_us = min(self._unexplained_us)
        least_us = _SLACK_US if self.spin_us else _CPU_SLACK_US
        if unexplained_us > max(least_us, _SLACK_FRACTION * claimed_us):
            return (
                f"Calls that were reported as {claimed_us:.0f} us kept the device for at least "
                f"{unexplained_us:.0f} us more by the judge's clock."
            )
        kernels_us = min(self._kernels_us, default=0.0)
        if kernels_us > claimed_us * (1 + _SLACK_FRACTION) + _KERNEL_SLACK_US:
            return f"Calls that were reported as {claimed_us:.0f} us ran kernels for {kernels_us:.0f} us."
        return ""

    def credited(self, samples_us: list[float]) -> tuple[float, ...]:
        """The samples to report, in microseconds: on a CPU with what long calls leave unexplained.

        An interpreted kernel takes many milliseconds there, and what is too little to blame anybody for is still too
        much to give away. Beside a short call the machine's own noise would be larger than the call.
        """
        if self.spin_us or min(self._unexplained_us) < _CPU_CREDIT_US or median(samples_us) < _CPU_LONG_US:
            return tuple(samples_us)
        return self.charged(samples_us)

    def charged(self, samples_us: list[float]) -> tuple[float, ...]:
        """The samples with all that every call left unexplained, in microseconds."""
        unexplained_us = max(min(self._unexplained_us), 0.0)
        return tuple(sample + unexplained_us for sample in samples_us)
