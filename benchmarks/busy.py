"""Keeping every core busy for a while, whatever happens to the one who asked."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

__all__ = ["busy_cores"]

_STARTED_S = 10.0
# It looks for its parent now and then, so that it goes when the parent is killed.
_LOOP = """
import os, sys
parent = int(sys.argv[1])
print("busy", flush=True)
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextlib.contextmanager
def busy_cores(count: int | None = None) -> Iterator[int]:
    """Run busy loops for the length of a ``with`` block.

    Args:
        count: How many; ``None`` for one a core.

    Yields:
        How many run.

    Raises:
        RuntimeError: One did not start.
    """
    count = os.cpu_count() or 1 if count is None else count
    command = [sys.executable, "-S", "-c", _LOOP, str(os.getpid())]
    with contextlib.ExitStack() as stack:
        loops = []
        for _ in range(count):
            loop = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            stack.callback(_end, loop)
            loops.append(loop)
        _wait_until_busy(loops)
        yield count


def _wait_until_busy(loops: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + _STARTED_S + 0.1 * len(loops)
    for loop in loops:
        assert loop.stdout is not None
        os.set_blocking(loop.stdout.fileno(), False)
        while not loop.stdout.read():
            if loop.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    "A busy loop did not start. Is the limit of processes reached (ulimit -u)?"
                )
            time.sleep(0.01)


def _end(loop: subprocess.Popen[bytes]) -> None:
    loop.kill()
    loop.wait()
    if loop.stdout is not None:
        loop.stdout.close()
