"""Capabilities of the calling process: which it has, and giving them up."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from enum import IntEnum

from gym_kernel.evaluator.kernel_calls import prctl

__all__ = ["Capability", "has_capabilities", "keep_capabilities"]

_VERSION = 0x20080522
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2

_libc = ctypes.CDLL(None, use_errno=True)


class Capability(IntEnum):
    """The capabilities that the fence asks about, with the kernel's numbers."""

    CHOWN = 0
    DAC_READ_SEARCH = 2
    SETGID = 6
    SETUID = 7
    SYS_ADMIN = 21


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Sets(ctypes.Structure):
    _fields_ = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


def has_capabilities(*wanted: Capability) -> bool:
    """Whether all of them are in effect."""
    header, sets = _Header(_VERSION, 0), (_Sets * 2)()
    _check(_libc.capget(ctypes.byref(header), sets))
    held = sets[0].effective | sets[1].effective << 32
    return all(held >> capability & 1 for capability in wanted)


def keep_capabilities(kept: Iterable[Capability] = ()) -> None:
    """Give up every capability but those in ``kept``; programs that are started later have those too.

    Raises:
        OSError: One of them is not held.
    """
    kept = tuple(kept)
    mask = sum(1 << capability for capability in kept)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    sets = (_Sets * 2)(_Sets(low, low, low), _Sets(high, high, high))
    header = _Header(_VERSION, 0)
    _check(_libc.capset(ctypes.byref(header), sets))
    for capability in kept:
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability)


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
