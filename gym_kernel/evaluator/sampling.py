"""How many timed calls are enough."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from gym_kernel.evaluator.timing import Timing

__all__ = ["SamplingPlan"]


@dataclass
class SamplingPlan:
    """Decides after every sample whether another one is wanted.

    Attributes:
        least: Samples taken whatever they say, as long as ``budget_s`` allows.
        most: Samples at which it stops.
        relative_ci: Half-width of the median's interval that is good enough (0.01 is 1 %).
        budget_s: Wall-clock seconds after which ``bare_least`` samples are enough.
        bare_least: Samples taken even over the budget.
        spin_us: Spin that the first timed call is queued behind, in microseconds; 0 where nothing is queued.
    """

    least: int
    most: int
    relative_ci: float
    budget_s: float
    bare_least: int = 3
    spin_us: float = 0.0
    _started: float = field(default_factory=time.monotonic)

    @classmethod
    def for_device(cls, device: torch.device) -> SamplingPlan:
        """The plan for a kind of device: a CPU shares its cores, so a tight interval is not waited for."""
        if device.type == "cpu":
            return cls(least=5, most=30, relative_ci=0.02, budget_s=0.1)
        return cls(least=6, most=60, relative_ci=0.01, budget_s=1.5, spin_us=250.0)

    def wants_more(self, samples: Sequence[float]) -> bool:
        """Whether the samples so far (microseconds) are too few or too wide."""
        count = len(samples)
        if count < self.bare_least:
            return True
        if count >= self.most or time.monotonic() - self._started > self.budget_s:
            return False
        if count < self.least:
            return True
        return Timing(tuple(samples)).relative_ci > self.relative_ci
