"""Repeated timings of one kernel: raw samples, and the statistics derived from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["Timing"]


@dataclass(frozen=True)
class Timing:
    """Durations of independent, verified calls of one kernel.

    Attributes:
        samples_us: One duration for each timed call, in microseconds, in the order of the calls.
    """

    samples_us: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.samples_us:
            raise ValueError("A Timing needs at least one sample.")
        if not all(math.isfinite(s) and s > 0 for s in self.samples_us):
            raise ValueError("Every timing sample must be a finite, positive number of microseconds.")

    @property
    def median_us(self) -> float:
        """Median duration in microseconds."""
        return median(self.samples_us)

    @property
    def interval_us(self) -> tuple[float, float]:
        """Distribution-free 95 % confidence interval of the median, in microseconds.

        The ranks come from the normal approximation of the binomial distribution of the number of
        samples below the median: ``n/2 -+ 1.96 * sqrt(n)/2`` (Conover, *Practical Nonparametric
        Statistics*, 3rd ed., section 3.2). With five samples or fewer it is the whole range.
        """
        return median_interval(self.samples_us)

    @property
    def ci_us(self) -> float:
        """Half the width of :attr:`interval_us`, in microseconds."""
        low, high = self.interval_us
        return (high - low) / 2

    @property
    def relative_ci(self) -> float:
        """Half-width of the interval as a fraction of the median (0.01 is 1 %)."""
        return self.ci_us / self.median_us


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """95 % confidence interval of the median by order statistics (see :class:`Timing`)."""
    ordered = sorted(samples)
    count = len(ordered)
    spread = 1.96 * math.sqrt(count) / 2
    low = max(math.floor(count / 2 - spread), 0)
    high = min(math.ceil(count / 2 + spread), count - 1)
    return ordered[low], ordered[high]
