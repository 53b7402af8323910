"""Where and on what a benchmark ran, and its results as JSON."""

from __future__ import annotations

import functools
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gym_kernel import __version__
from gym_kernel.evaluator.briefing import DeviceFacts

RESULTS = Path(__file__).parent / "results"


def device_slug(facts: DeviceFacts) -> str:
    """A short file-name form of a device: ``h200`` or ``cpu``."""
    if not facts.is_cuda:
        return "cpu"
    return facts.name.lower().removeprefix("nvidia ").replace(" ", "-")


def write_report(name: str, facts: DeviceFacts, body: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write ``<name>-<device>.json`` with the device, the versions and the commit beside the results."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{device_slug(facts)}.json"
    report = {
        "benchmark": name,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": _commit(),
        "gym_kernel": __version__,
        "python": platform.python_version(),
        "device": asdict(facts),
        "command": f"python -m benchmarks.{Path(sys.argv[0]).stem}",
        **body,
    }
    path.write_text(json.dumps(report, indent=2) + "\n")
    return path


@functools.cache
def _commit() -> str:
    """The commit; a copy without its history is told by ``BENCHMARK_COMMIT``."""
    if "BENCHMARK_COMMIT" in os.environ:
        return os.environ["BENCHMARK_COMMIT"]
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=RESULTS.parent
        )
    except FileNotFoundError:
        return ""
    return found.stdout.strip()
