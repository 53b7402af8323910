"""How many submissions may be imported and compiled at the same time."""

from __future__ import annotations

import os

from gym_kernel.errors import ConfigurationError

__all__ = ["COMPILE_SLOTS", "compile_slots"]

COMPILE_SLOTS = "GYM_KERNEL_COMPILE_SLOTS"
"""The environment variable that sets it."""


def compile_slots() -> int:
    """``$GYM_KERNEL_COMPILE_SLOTS`` where it is set, else as many as there are cores, but two at least.

    Raises:
        ConfigurationError: It is set to something else than a positive whole number.
    """
    value = os.environ.get(COMPILE_SLOTS, "")
    if not value:
        return max(2, len(os.sched_getaffinity(0)))
    if value.isascii() and value.isdecimal() and int(value) > 0:
        return int(value)
    raise ConfigurationError(
        f"{COMPILE_SLOTS}={value!r} must be a positive whole number; unset it for one a core."
    )
