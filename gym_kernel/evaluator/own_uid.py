"""A user id for each worker, where the host is root: workers cannot touch each other's, or anybody's, things."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from gym_kernel.evaluator.capabilities import Capability, has_capabilities, keep_capabilities
from gym_kernel.evaluator.kernel_calls import prctl

__all__ = ["become", "can_change_user", "uid_for_worker", "unreachable_for_others"]

_PR_SET_KEEPCAPS = 8
_WORKERS_OF_A_HOST = 1024
_SPAN = 1 << 28
# Ids from here on are negative for programs that keep them in a signed integer.
_CEILING = 1 << 31
_NOBODY = 65534


def can_change_user() -> bool:
    """Whether this process may give a worker, and the worker's folder, a user of its own."""
    return os.geteuid() == 0 and has_capabilities(Capability.CHOWN, Capability.SETGID, Capability.SETUID)


def uid_for_worker(host_pid: int, worker_id: int) -> int:
    """A user id that no other worker that lives at the same time is likely to have.

    It is taken from the upper half of what this user namespace knows, far from ordinary accounts.
    """
    rows = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    start, length = max(((int(row[0]), int(row[2])) for row in rows), key=lambda row: row[1])
    top = min(start + length, _CEILING)
    span = max(1, min(_SPAN, (top - start) // 2))
    uid = top - span + (host_pid * _WORKERS_OF_A_HOST + worker_id % _WORKERS_OF_A_HOST) % span
    return uid if uid != _NOBODY else top - span


def become(uid: int, *, read_everything: bool = False) -> None:
    """Change to a user and a group of this number, for ever.

    Args:
        uid: The number.
        read_everything: Keep the capability to read and search files without regard to their permissions.

    Raises:
        OSError: The kernel refused.
    """
    if read_everything:
        prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    keep_capabilities((Capability.DAC_READ_SEARCH,) if read_everything else ())


def unreachable_for_others(paths: Iterable[Path]) -> dict[Path, list[Path]]:
    """Paths that lie under a folder which only its owner may search.

    Returns:
        For each such folder, the outermost one of a path, the paths below it.
    """
    found: dict[Path, list[Path]] = {}
    for path in paths:
        for folder in reversed(path.parents):
            if not folder.stat().st_mode & 0o001:
                found.setdefault(folder, []).append(path)
                break
    return found
