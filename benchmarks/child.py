"""A process of a benchmark's own that writes one JSON file, with a limit on its time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ChildFailed", "ChildResult", "run_child"]

_ROOT = Path(__file__).parents[1]
_TAIL_CHARS = 1_500


class ChildFailed(Exception):
    """The process failed, or took too long; the message says how it ended."""


@dataclass(frozen=True)
class ChildResult:
    """What came of it.

    Attributes:
        answer: What it wrote.
        seconds: From its start to its end.
    """

    answer: dict[str, Any]
    seconds: float


def run_child(
    module: str, arguments: Sequence[str], limit_s: float, environment: dict[str, str] | None = None
) -> ChildResult:
    """Run ``python -m <module> <arguments> <file>`` and read the JSON that it writes into the file.

    Args:
        module: The module.
        arguments: Its arguments; the file comes last.
        limit_s: Seconds after which it is killed with everything that it started.
        environment: Variables to set beside this process's own.

    Raises:
        ChildFailed: It ended otherwise than with 0, wrote nothing, or was killed.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        file, log = Path(folder) / "answer.json", Path(folder) / "log.txt"
        started = time.perf_counter()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments, str(file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=_ROOT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
            ending = _wait(process, limit_s)
        seconds = time.perf_counter() - started
        if not ending and file.is_file():
            return ChildResult(json.loads(file.read_text(encoding="utf-8")), seconds)
        tail = log.read_text(encoding="utf-8", errors="replace")[-_TAIL_CHARS:].strip()
        raise ChildFailed(f"python -m {module} {ending or 'wrote no answer'}. {tail}".strip())


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> str:
    """How it ended; empty where all is well. Nothing of it is left afterwards."""
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return f"was killed after {limit_s:.0f} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return f"ended with {code}" if code else ""
