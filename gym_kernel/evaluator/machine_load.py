"""Whether the machine has more to do than it has cores for."""

from __future__ import annotations

import os

__all__ = ["is_overloaded"]

# Up to one thread a core is what the judged kernel itself wants.
_THREADS_A_CORE = 2


def is_overloaded() -> bool:
    """Whether more than two threads for each core of the machine want to run at this moment (``proc(5)``, loadavg)."""
    with open("/proc/loadavg", encoding="ascii") as loadavg:
        runnable = int(loadavg.read().split()[3].partition("/")[0])
    return runnable > _THREADS_A_CORE * (os.cpu_count() or 1)
