"""Write the measured tables of the README from the results in ``benchmarks/results``.

    python -m benchmarks.readme_table [--check]

A table stands between the lines ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; what is there is replaced.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.pilot_table import as_markdown
from benchmarks.report import RESULTS

README = Path(__file__).parents[1] / "README.md"

_STAGES = ("queue_s", "compile_s", "correctness_s", "timing_s")


def pilot_table(results: Path = RESULTS) -> str:
    """The pilot's table on an H200, and on what it was measured."""
    report = _read(results / "pilot-h200.json")
    return f"{as_markdown(report['rows'])}\n\n{_conditions(report)}"


def latency_table(results: Path = RESULTS) -> str:
    """Median seconds of a warm ``env.step`` and of its stages, a row for each task and device."""
    reports = [_read(path) for path in sorted(results.glob("step-latency-*.json"))]
    stages = [stage for stage in _STAGES if any(stage in report["median_s"] for report in reports)]
    names = ["task", "device", "steps", "step (s)", *(f"{stage.removesuffix('_s')} (s)" for stage in stages)]
    lines = [f"| {' | '.join(names)} |", f"|---|---|{'---:|' * (len(names) - 2)}"]
    for report in sorted(reports, key=lambda report: (report["device"]["name"], report["task"])):
        medians = report["median_s"]
        times = [_seconds(medians.get(name)) for name in ("step_s", *stages)]
        cells = [report["task"], report["device"]["name"], str(report["steps"]), *times]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {"pilot-h200": pilot_table, "step-latency": latency_table}


def with_tables(readme: str) -> str:
    """The README's text with every table made anew.

    Raises:
        ValueError: A table has no place in the text.
    """
    for name, table in TABLES.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        place = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
        if not place.search(readme):
            raise ValueError(f"The README has no lines {begin!r} and {end!r}.")
        made = f"{begin}\n{table()}\n{end}"
        readme = place.sub(lambda _, made=made: made, readme)
    return readme


def main() -> None:
    """Rewrite the README, or say whether it would change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if something would change")
    options = parser.parse_args()
    before = README.read_text(encoding="utf-8")
    after = with_tables(before)
    if options.check and after != before:
        raise SystemExit("The README's tables are not those of the results: run benchmarks.readme_table.")
    if after != before:
        README.write_text(after, encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def _conditions(report: dict[str, Any]) -> str:
    device, rows = report["device"], report["rows"]
    tiers = ", ".join(sorted({row["isolation"] for row in rows}))
    contended = "contended" if any(row["contended"] for row in rows) else "not contended"
    return (
        f"{device['name']}, driver {device['driver']}, torch {device['torch']}, triton {device['triton']}, "
        f"CUDA {device['cuda']}, Python {report['python']}; isolation `{tiers}`, {contended}; "
        f"gym-kernel {report['gym_kernel']}, {report['date']}."
    )


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if value < 0.001 else f"{value:.3f}"


if __name__ == "__main__":
    main()
