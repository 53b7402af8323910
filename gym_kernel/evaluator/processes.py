"""Owning processes on Linux: death signals, groups, reaping, readable exits."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "become_subreaper",
    "children_of",
    "close_fds",
    "close_fds_except",
    "die_with_parent",
    "exit_text",
    "kill_group",
    "process_is_alive",
    "set_undumpable",
]

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Call ``prctl(option, value, 0, 0, 0)``.

    Raises:
        OSError: The kernel refused.
    """
    if _libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel SIGKILL this process when the thread that forked it ends.

    Args:
        parent_pid: Who the parent must still be; where it is not, this process exits at once.
    """
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def become_subreaper() -> None:
    """Adopt orphaned descendants, so that they can be found, killed and reaped."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_undumpable() -> None:
    """Refuse core dumps, ptrace and ``/proc/<pid>/mem`` to processes of the same user."""
    prctl(_PR_SET_DUMPABLE, 0)


def kill_group(pgid: int) -> bool:
    """SIGKILL a process group; returns whether anything was there to kill."""
    try:
        os.killpg(pgid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def children_of(pid: int) -> tuple[int, ...]:
    """Pids of the direct children of ``pid``, zombies included."""
    try:
        return tuple(int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        return tuple(_children_by_scan(pid))


def _children_by_scan(pid: int) -> Iterable[int]:
    # A kernel without CONFIG_PROC_CHILDREN has no children file.
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                yield int(entry.name)


def process_is_alive(pid: int) -> bool:
    """Whether a process with this pid exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")


def exit_text(status: int) -> str:
    """Readable form of a wait status: ``"killed by SIGSEGV"`` or ``"exited with code 3"``."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return f"killed by {name}"
    return f"exited with code {os.WEXITSTATUS(status)}"


def close_fds(fds: Iterable[int]) -> None:
    """Close descriptors; ones that are closed already are passed over."""
    for fd in fds:
        try:
            os.close(fd)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise


def close_fds_except(keep: Iterable[int]) -> None:
    """Close every descriptor of this process but those in ``keep``."""
    edges = sorted(set(keep))
    low = 0
    limit = os.sysconf("SC_OPEN_MAX")
    for fd in edges:
        # An empty range would close everything: CPython hands its end, -1, to close_range as unsigned.
        if low < fd:
            os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, limit)
