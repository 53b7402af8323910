"""The roofline floor of a task: the shortest time the hardware allows.

``t_min = max(bytes / bandwidth, FLOPs / rate)`` (Williams, Waterman and Patterson, "Roofline: an
insightful visual performance model for multicore architectures", CACM 52(4), 2009).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

__all__ = ["CeilingSource", "Ceilings", "Roofline", "Work", "roofline_of"]


class CeilingSource(str, Enum):
    """Where the ceilings of a device come from."""

    MEASURED = "measured"
    DATASHEET = "datasheet"


@dataclass(frozen=True)
class Ceilings:
    """What a device can do at best.

    Attributes:
        bandwidth_bytes_per_s: Sustained copy bandwidth, bytes read plus bytes written per second.
        flops_per_s: Sustained matrix-product rate by dtype name (``"float32"``, ``"float16"``,
            ``"bfloat16"``, ...), in FLOP/s. ``"float32"`` is the rate with TF32 off.
        floor_bandwidth_bytes_per_s: A bandwidth that no kernel can exceed (the datasheet's peak, or
            on a CPU the best rate seen inside the caches). A time that implies more is not believed.
        source: Whether the first two were measured on this device or taken from the datasheet.
    """

    bandwidth_bytes_per_s: float
    flops_per_s: dict[str, float]
    floor_bandwidth_bytes_per_s: float
    source: CeilingSource = CeilingSource.MEASURED

    def rate_of(self, dtype: str) -> float:
        """FLOP/s of the unit that may work on ``dtype``; float32's where ``dtype`` was not measured."""
        return self.flops_per_s.get(dtype, self.flops_per_s["float32"])


@dataclass(frozen=True)
class Work:
    """What a task must do at the very least.

    Attributes:
        bytes: Every input, parameter and output moved once.
        flops: Floating-point operations by the dtype of the unit that may do them.
    """

    bytes: int
    flops: dict[str, float] = field(default_factory=dict)

    @property
    def total_flops(self) -> float:
        """All floating-point operations, over every dtype."""
        return sum(self.flops.values())


@dataclass(frozen=True)
class Roofline:
    """The floor of one task on one device.

    Attributes:
        t_min_us: The roofline time in microseconds, from sustained ceilings.
        floor_us: A time in microseconds that no honest kernel can beat; below it is ``cheating``.
        memory_bound: Whether bytes (rather than FLOPs) set ``t_min_us``.
        work: Bytes and FLOPs that were counted.
        ceilings: The ceilings they were divided by.
    """

    t_min_us: float
    floor_us: float
    memory_bound: bool
    work: Work
    ceilings: Ceilings

    def fraction(self, runtime_us: float) -> float:
        """``min(t_min / runtime, 1)``: how close a time in microseconds is to the floor, in (0, 1]."""
        return min(self.t_min_us / runtime_us, 1.0)

    def at_most(self, seen_us: float) -> Roofline:
        """The same with a floor no higher than a time that was seen, in microseconds: ceilings may be too low."""
        return replace(self, t_min_us=min(self.t_min_us, seen_us))


def roofline_of(
    work: Work, ceilings: Ceilings, *, resident_bytes: int = 0, floor_margin: float = 0.8
) -> Roofline:
    """Work out the roofline of a task on a device.

    Args:
        work: Bytes and FLOPs of the task.
        ceilings: Ceilings of the device.
        resident_bytes: Output bytes that may still be in the L2 when the clock stops, and need not have
            reached memory.
        floor_margin: The believed floor is this fraction of the time at ``floor_bandwidth``.

    Returns:
        The roofline, times in microseconds.
    """
    memory_s = work.bytes / ceilings.bandwidth_bytes_per_s
    compute_s = sum(flops / ceilings.rate_of(dtype) for dtype, flops in work.flops.items())
    moved_bytes = max(work.bytes - resident_bytes, 0)
    floor_s = floor_margin * moved_bytes / ceilings.floor_bandwidth_bytes_per_s
    return Roofline(
        t_min_us=max(memory_s, compute_s) * 1e6,
        floor_us=floor_s * 1e6,
        memory_bound=memory_s >= compute_s,
        work=work,
        ceilings=ceilings,
    )
