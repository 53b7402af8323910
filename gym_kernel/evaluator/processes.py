"""Owning processes on Linux: death signals, groups, reaping, readable exits."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from gym_kernel.evaluator.kernel_calls import prctl

__all__ = [
    "become_subreaper",
    "children_of",
    "close_fds",
    "close_fds_except",
    "descendants_of",
    "die_with_parent",
    "exit_text",
    "group_is_empty",
    "kill_group",
    "process_is_alive",
    "set_dumpable",
    "set_undumpable",
]

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(parent_pid: int, signal_number: int = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when the thread that forked it ends.

    A change of user makes the kernel forget it, so it is asked for again after one.

    Args:
        parent_pid: Who the parent must still be; where it is not, this process exits at once.
        signal_number: What to send.
    """
    prctl(_PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent_pid:
        os._exit(1)


def become_subreaper() -> None:
    """Adopt orphaned descendants, so that they can be found, killed and reaped."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_undumpable() -> None:
    """Refuse core dumps, ptrace and ``/proc/<pid>/mem`` to processes of the same user."""
    prctl(_PR_SET_DUMPABLE, 0)


def set_dumpable() -> None:
    """Allow processes of the same user what :func:`set_undumpable` refuses them."""
    prctl(_PR_SET_DUMPABLE, 1)


def kill_group(pgid: int) -> bool:
    """SIGKILL a process group; returns whether anything was there to kill."""
    try:
        os.killpg(pgid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def children_of(pid: int) -> tuple[int, ...]:
    """Pids of the direct children of ``pid``, whichever of its threads forked them, zombies included."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return ()
    if not Path(f"/proc/{pid}/task/{pid}/children").exists():
        return tuple(_children_by_scan(pid))
    found: list[int] = []
    for thread in threads:
        # A thread that has ended meanwhile has handed its children on to another one.
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return tuple(found)


def _children_by_scan(pid: int) -> Iterable[int]:
    # A kernel without CONFIG_PROC_CHILDREN has no children file.
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                yield int(entry.name)


def descendants_of(pid: int) -> set[int]:
    """Pids of all processes below ``pid``."""
    found: set[int] = set()
    pending = [pid]
    while pending:
        for child in children_of(pending.pop()):
            if child not in found:
                found.add(child)
                pending.append(child)
    return found


def group_is_empty(pgid: int) -> bool:
    """Whether no process, zombies included, is left in a process group."""
    try:
        os.killpg(pgid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


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
