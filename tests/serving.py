"""A real ``gym-kernel serve`` in a process of its own, for tests."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from gym_kernel.evaluator.processes import descendants_of, process_is_alive

ROOT = Path(__file__).parents[1]
KERNELS = ROOT / "examples" / "kernels"
GOOD = (KERNELS / "relu.py").read_text(encoding="utf-8")
WRONG = GOOD.replace("tl.where(x < 0.0, 0.0, x)", "tl.abs(x)")

HANGING = """
import subprocess, torch
subprocess.run(["sleep", "{seconds}"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""

_START_S = 120.0
_ADDRESS = re.compile(r"at (http://\S+)")


class Server:
    """A server and its processes. Files are kept in ``folder``."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gym_kernel.cli", "serve", "--port", "0", "--device", "cpu", *options],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, "TMPDIR": str(self.temporary)},
            cwd=folder,
        )
        self.url = ""

    def wait_until_ready(self) -> None:
        """Read the address that the server prints once its evaluator has started."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = _ADDRESS.search(line)
        assert found, f"{line!r}\n{self.log()}"
        self.url = found[1]

    @property
    def family(self) -> set[int]:
        """Everything below the server."""
        return descendants_of(self.process.pid)

    def log(self) -> str:
        """What the server wrote to its standard error."""
        return (self.folder / "log").read_text(encoding="utf-8")

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(30)

    def close(self) -> None:
        """End it for sure."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """Run a server that is ready, and end it afterwards."""
    server = Server(folder, *options)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.close()


def survivors(pids: set[int], limit_s: float = 10.0) -> set[int]:
    """Wait until none of the processes lives; returns those that still do."""
    deadline = time.monotonic() + limit_s
    while alive := {pid for pid in pids if process_is_alive(pid)}:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return alive


def wait_for_sleeper(server: Server, seconds: str) -> int:
    """Wait for the ``sleep`` of a hanging submission; returns its pid."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        for pid in server.family:
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if words[:2] == [b"sleep", seconds.encode()]:
                    return pid
        time.sleep(0.05)
    raise AssertionError(f"No `sleep {seconds}` was started.\n{server.log()}")
