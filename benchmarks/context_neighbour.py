"""Makes a GPU context and says what it is doing, line by line; killed by whoever started it.

    python -m benchmarks.context_neighbour

Each line is the name of a phase and the time at which it began, in nanoseconds of the monotonic clock: ``ready`` (it
waits for a line on its standard input), ``driver`` (``cuInit``), ``context``, ``tools`` (torch's first kernel),
``idle``. Then it waits to be killed.
"""

from __future__ import annotations

import ctypes
import sys
import time

__all__ = ["main"]

_WAIT_S = 60.0


def _say(phase: str) -> None:
    print(phase, time.monotonic_ns(), flush=True)


def _checked(code: int, call: str) -> None:
    if code:
        raise SystemExit(f"{call} failed with code {code}.")


def main() -> None:
    """Go through the phases and wait."""
    import torch

    driver = ctypes.CDLL("libcuda.so.1")
    _say("ready")
    sys.stdin.readline()
    _say("driver")
    _checked(driver.cuInit(0), "cuInit")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _checked(driver.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    _say("context")
    _checked(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    _say("tools")
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    _say("idle")
    time.sleep(_WAIT_S)


if __name__ == "__main__":
    main()
