"""System calls of Linux that Python 3.10 has no function for."""

from __future__ import annotations

import ctypes
import os
from enum import IntFlag
from pathlib import Path

__all__ = ["MountFlag", "Namespace", "mount", "prctl", "unshare"]

_libc = ctypes.CDLL(None, use_errno=True)


class Namespace(IntFlag):
    """Kinds of namespaces, with the kernel's ``CLONE_NEW*`` values."""

    MOUNT = 0x00020000
    CGROUP = 0x02000000
    UTS = 0x04000000
    IPC = 0x08000000
    USER = 0x10000000
    PID = 0x20000000
    NET = 0x40000000


class MountFlag(IntFlag):
    """Flags of ``mount``, with the kernel's ``MS_*`` values."""

    NOSUID = 1 << 1
    NODEV = 1 << 2
    NOEXEC = 1 << 3
    BIND = 1 << 12
    RECURSIVE = 1 << 14
    PRIVATE = 1 << 18


def unshare(kinds: Namespace) -> None:
    """Leave namespaces for new ones.

    Raises:
        OSError: The kernel refused.
    """
    _check(_libc.unshare(ctypes.c_int(int(kinds))))


def mount(source: str, target: Path | str, kind: str, flags: MountFlag, options: str = "") -> None:
    """Mount a file system.

    Raises:
        OSError: The kernel refused.
    """
    _check(
        _libc.mount(
            os.fsencode(source),
            os.fsencode(target),
            kind.encode() or None,
            ctypes.c_ulong(int(flags)),
            options.encode() or None,
        ),
        str(target),
    )


def prctl(option: int, *values: int) -> None:
    """Call ``prctl`` with up to four arguments; the others are zero.

    Raises:
        OSError: The kernel refused.
    """
    padded = (*values, 0, 0, 0, 0)[:4]
    _check(_libc.prctl(option, *(ctypes.c_ulong(value) for value in padded)))


def _check(result: int, path: str | None = None) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
