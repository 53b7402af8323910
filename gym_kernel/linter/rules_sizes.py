"""Rules about sizes: official ones fit into memory and take long enough to be timed, small ones are quick."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gym_kernel.linter.official_count import OfficialCount, count_official
from gym_kernel.linter.report import Finding, Rule, Severity
from gym_kernel.linter.rules_roofline import check_elementwise_flops
from gym_kernel.linter.workbench import Sample, Workbench, tensors_of
from gym_kernel.tasks.task import Task

__all__ = ["check_official_sizes", "check_small_sizes"]

_MIB = 1 << 20
# 16 MiB take 4 us at 4 TB/s, and so do 200 MFLOP at 50 TFLOP/s: below both a launch is most of what is timed.
_LEAST_OFFICIAL_BYTES = 16 * _MIB
_LEAST_OFFICIAL_FLOPS = 2e8
_MOST_SMALL_ELEMENTS = 1 << 18


def check_official_sizes(task: Task) -> tuple[OfficialCount | None, list[Finding]]:
    """Count what the official sizes need and do, and compare it with what the task declares.

    Args:
        task: A task at one shape, whose reference runs.

    Returns:
        The count, where it can be had, and what is wrong.
    """
    try:
        count = count_official(task)
    except Exception as error:
        # Whatever a reference may raise on fake tensors: it runs on real ones, so this is no fault of its own.
        why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return None, [
            Finding(
                Rule.MEMORY,
                Severity.WARNING,
                f"What the official sizes need cannot be counted without allocating it ({why}). Check it on a GPU.",
            )
        ]
    findings = [*_check_memory(task, count), *_check_moved(count), *check_elementwise_flops(task, count)]
    return count, findings


def check_small_sizes(workbench: Workbench, official: Sample) -> Iterator[Finding]:
    """Small sizes are small."""
    if workbench.bench.device_id != "cpu":
        return
    most = max((t.numel() for t in (*tensors_of(official.inputs), *official.expected.outputs)), default=0)
    if most > _MOST_SMALL_ELEMENTS:
        yield Finding(
            Rule.SIZES,
            Severity.WARNING,
            f"At the small sizes a tensor has {most:,} elements, which takes an interpreted kernel seconds. Choose "
            "sizes of 2,000 to 64,000 elements.",
        )


def _check_memory(task: Task, count: OfficialCount) -> Iterator[Finding]:
    if count.memory_gib > task.memory_gib:
        yield Finding(
            Rule.MEMORY,
            Severity.ERROR,
            f"An evaluation at the official sizes needs {count.memory_gib:.1f} GiB of GPU memory, but memory_gib is "
            f"{task.memory_gib:g}. Declare {math.ceil(count.memory_gib)}, or choose smaller sizes.",
        )


def _check_moved(count: OfficialCount) -> Iterator[Finding]:
    if count.moved_bytes < _LEAST_OFFICIAL_BYTES and count.product_flops < _LEAST_OFFICIAL_FLOPS:
        yield Finding(
            Rule.SIZES,
            Severity.WARNING,
            f"At the official sizes only {count.moved_bytes / _MIB:.1f} MiB move, so that a launch may take "
            "longer than the work. Choose sizes of 50 MB to 1 GB.",
        )
