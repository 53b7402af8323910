"""How much of the machine one worker may use."""

from __future__ import annotations

import contextlib
import os
import resource
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["FenceLimits", "lower_limits"]

_MEMORY_LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def _half_of_memory() -> int:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in _MEMORY_LIMIT_FILES:
        # A container's own limit; "max" where there is none.
        with contextlib.suppress(OSError, ValueError):
            total = min(total, int(Path(name).read_text()))
    return max(total // 2, 2 << 30)


def _processes_for_this_machine() -> int:
    # A build of several files starts a compiler, with its own helpers, on every core.
    return max(1024, 16 * (os.cpu_count() or 1))


@dataclass(frozen=True)
class FenceLimits:
    """Bounds of what one worker, with all that it starts, may use.

    ``RLIMIT_AS`` is never set: CUDA reserves address ranges far beyond what it uses.

    Attributes:
        file_bytes: Largest file it may write.
        open_files: Most descriptors a process of it may hold.
        processes: Most processes and threads at a time.
        memory_bytes: Most memory, beside what its scratch folder holds.
        scratch_bytes: Most bytes in its scratch folder.
        scratch_files: Most files in its scratch folder.
    """

    file_bytes: int = 4 << 30
    open_files: int = 4096
    processes: int = field(default_factory=_processes_for_this_machine)
    memory_bytes: int = field(default_factory=_half_of_memory)
    scratch_bytes: int = 4 << 30
    scratch_files: int = 100_000


def lower_limits(limits: FenceLimits, *, counts_processes: bool) -> None:
    """Set this process's resource limits, which what it starts inherits.

    Args:
        limits: The bounds.
        counts_processes: Whether the kernel counts this worker's processes apart from others'; where it adds up all
            that its user runs, a bound on them could stop an honest build.
    """
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, limits.file_bytes)
    _lower(resource.RLIMIT_NOFILE, limits.open_files)
    if counts_processes:
        _lower(resource.RLIMIT_NPROC, limits.processes)


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (limit, limit))
