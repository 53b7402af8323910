"""A benchmark's results as they come: a report on disk after each, its picture beside it at the end."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.clocks import read_clocks
from benchmarks.report import write_report
from gym_kernel.evaluator.briefing import DeviceFacts

__all__ = ["Deadline", "Journal"]


class Deadline:
    """A number of seconds from now.

    Args:
        limit_s: Seconds; infinity for none.
    """

    def __init__(self, limit_s: float) -> None:
        self._ends = time.monotonic() + limit_s

    @property
    def left_s(self) -> float:
        """Seconds that are left, 0 at least."""
        return max(self._ends - time.monotonic(), 0.0)

    @property
    def has_passed(self) -> bool:
        """Whether none is left."""
        return self.left_s == 0.0


class Journal:
    """Writes one benchmark's report, over and over as results are added.

    Args:
        name: Name of the report.
        device_id: The device, whose clocks are read now and at each writing.
        folder: Where it goes.
        settings: What the benchmark was asked for.
    """

    def __init__(self, name: str, device_id: str, folder: Path, settings: dict[str, Any]) -> None:
        self._name = name
        self._device_id = device_id
        self._folder = folder
        self._settings = settings
        self._clocks_at_start = read_clocks(device_id)

    def write(self, facts: DeviceFacts, body: dict[str, Any]) -> Path:
        """Write all results so far.

        Args:
            facts: The device.
            body: The results.

        Returns:
            Where they are.
        """
        clocks = {"start": asdict(self._clocks_at_start), "end": asdict(read_clocks(self._device_id))}
        return write_report(
            self._name, facts, {"settings": self._settings, "clocks": clocks, **body}, self._folder
        )

    def finish(self, facts: DeviceFacts, body: dict[str, Any]) -> Path:
        """Write the results a last time, draw them, and say where both are."""
        from benchmarks.pictures import PictureUnavailable, draw_report

        path = self.write(facts, body)
        print(path)
        try:
            print(draw_report(path))
        except PictureUnavailable as error:
            print(f"There is no picture: {error}", file=sys.stderr)
        return path
