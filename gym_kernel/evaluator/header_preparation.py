"""The host's part in fast builds: it has headers prepared when the first submission comes that builds an extension."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

from gym_kernel.evaluator.prepared_headers import extensions_root, prepared_headers

__all__ = ["HeaderPreparation"]

_PROGRAM = "gym_kernel.evaluator.prepare_headers"
_SIGN = "cpp_extension"


class HeaderPreparation:
    """A program in the background that prepares headers, at most one in a host's life.

    Nobody waits for it: until it is done, extensions build the ordinary way. It ends with the host.
    """

    def __init__(self) -> None:
        # Workers must find the folder when they are forked, whenever it is filled.
        self._is_wanted = extensions_root() is not None
        self._process: subprocess.Popen[bytes] | None = None

    def begin_for(self, code: str) -> None:
        """Begin, unless it was begun or done before, if this code looks as if it built an extension.

        Args:
            code: A submission's text.
        """
        if not self._is_wanted or _SIGN not in code:
            return
        self._is_wanted = False
        if prepared_headers() is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _PROGRAM, "--for-host"], stdin=subprocess.DEVNULL
            )

    def pids(self) -> set[int]:
        """Pid of the program, once it was started."""
        return set() if self._process is None else {self._process.pid}

    def stop(self) -> None:
        """Kill the program; the host reaps it, and what it leaves behind."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            self._process = None
