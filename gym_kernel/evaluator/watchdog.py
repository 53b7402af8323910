"""Bounds that no resource limit can express: a whole worker's memory, processes and disk."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from gym_kernel.evaluator.fence_limits import FenceLimits
from gym_kernel.evaluator.processes import descendants_of

__all__ = ["Watchdog"]

_FILES_EVERY_S = 1.0


class Watchdog:
    """Adds up what the descendants of this process use.

    Args:
        limits: The bounds.
        ignored: Descendants of this process that are not the worker's.
        scratch: Folder to measure, or ``None`` where its file system has a limit of its own.
    """

    def __init__(self, limits: FenceLimits, ignored: frozenset[int], scratch: Path | None) -> None:
        self._limits = limits
        self._ignored = ignored
        self._scratch = scratch
        self._next_look_at_files = time.monotonic() + _FILES_EVERY_S
        self._held_memory = 0

    def complaint(self) -> str | None:
        """What is over its bound, in words for the policy, or ``None``."""
        limits = self._limits
        pids = descendants_of(os.getpid()) - self._ignored
        memory, tasks = 0, 0
        for pid in pids:
            own_memory, own_tasks = _usage(pid)
            memory += own_memory
            tasks += own_tasks
        # Deleted files count as long as they are held open, and those in memory as memory.
        disk = self._look_at_files(pids)
        if memory + self._held_memory > limits.memory_bytes:
            return f"it used more than {limits.memory_bytes / 2**30:.1f} GiB of memory"
        if tasks > limits.processes:
            return f"it ran more than {limits.processes} processes and threads"
        if disk > limits.scratch_bytes:
            return f"it stored more than {limits.scratch_bytes / 2**30:.1f} GiB in its scratch folder"
        return None

    def _look_at_files(self, pids: set[int]) -> int:
        now = time.monotonic()
        if now < self._next_look_at_files:
            return 0
        self._held_memory, disk = _deleted_files(pids)
        if self._scratch is not None:
            disk += _size(self._scratch, self._limits)
        else:
            disk = 0
        # A tree that takes long to walk is walked less often.
        self._next_look_at_files = time.monotonic() + max(_FILES_EVERY_S, 10 * (time.monotonic() - now))
        return disk


def _usage(pid: int) -> tuple[int, int]:
    """Bytes of memory that are a process's own or shared with others, and its number of threads."""
    memory, threads = 0, 1
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as lines:
            for line in lines:
                if line.startswith(("RssAnon:", "RssShmem:", "VmSwap:")):
                    memory += int(line.split()[1]) * 1024
                elif line.startswith("Threads:"):
                    threads = int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return memory, threads


def _deleted_files(pids: set[int]) -> tuple[int, int]:
    """Bytes of files without a name that processes hold open: in memory, and on disk."""
    memory, disk = 0, 0
    seen: set[tuple[int, int]] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    status = os.stat(entry.path)
                    if status.st_nlink or (status.st_dev, status.st_ino) in seen:
                        continue
                    seen.add((status.st_dev, status.st_ino))
                    if os.readlink(entry.path).startswith("/memfd:"):
                        memory += status.st_blocks * 512
                    else:
                        disk += status.st_blocks * 512
    return memory, disk


def _size(folder: Path, limits: FenceLimits) -> int:
    """Bytes below a folder; more than the limit where it holds too many files."""
    total, count = 0, 0
    pending = [str(folder)]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                count += 1
                if count > limits.scratch_files or total > limits.scratch_bytes:
                    return limits.scratch_bytes + 1
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
    return total
