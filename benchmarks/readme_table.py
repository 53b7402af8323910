"""Write the measured tables of the README and of the pages in ``docs`` from the results in ``benchmarks/results``.

    python -m benchmarks.readme_table [--check]

A table stands between the lines ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; what is there is replaced.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import core_table, kernelbench_table
from benchmarks.pilot_table import as_markdown
from benchmarks.report import RESULTS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
VERDICTS = ROOT / "docs" / "verdicts.md"
CORE = ROOT / "docs" / "core-h200.md"
KERNELBENCH = ROOT / "docs" / "kernelbench-h200.md"

_STAGES = ("queue_s", "compile_s", "correctness_s", "timing_s", "rest_s", "transport_s", "env_s")


def pilot_table(results: Path = RESULTS) -> str:
    """The pilot's table on an H200, and on what it was measured."""
    report = _read(results / "pilot-h200.json")
    return f"{as_markdown(report['rows'])}\n\n{_conditions(report)}"


def latency_table(results: Path = RESULTS) -> str:
    """Median seconds of a warm ``env.step`` and of its stages, a row for each kernel and device."""
    rows = _latency_rows(results)
    stages = [stage for stage in _STAGES if any(stage in row["median_s"] for row in rows)]
    names = ["task", "device", "steps", "step (s)", *(f"{stage.removesuffix('_s')} (s)" for stage in stages)]
    lines = [f"| {' | '.join(names)} |", f"|---|---|{'---:|' * (len(names) - 2)}"]
    for row in sorted(rows, key=lambda row: (row["device"], row["task"])):
        times = [_seconds(row["median_s"].get(name)) for name in ("step_s", *stages)]
        cells = [row["task"], row["device"], str(row["steps"]), *times]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _latency_rows(results: Path) -> list[dict[str, Any]]:
    """What ``benchmarks.latency`` measured, and before it ``step_latency`` for kernels that it has not on a device."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(results.glob("step-latency-*.json")):
        report = _read(path)
        row = {
            "device": report["device"]["name"],
            **{key: report[key] for key in ("task", "steps", "median_s")},
        }
        rows[row["task"], row["device"]] = row
    for path in sorted(results.glob("latency-*.json")):
        report = _read(path)
        for row in report["rows"]:
            rows[row["task"], report["device"]["name"]] = {"device": report["device"]["name"], **row}
    return list(rows.values())


def corpus_table(name: str, results: Path = RESULTS) -> str:
    """Runs of one corpus on one device by kind: how many were rewarded, and the statuses."""
    report = _read(results / f"corpus-{name}.json")
    honest = report["corpus"] == "honest"
    lines = [
        f"| {'style' if honest else 'kind'} | modules | runs | {'refused' if honest else 'rewarded'} | statuses |",
        "|---|---:|---:|---:|---|",
    ]
    rows = report["rows"]
    for kind in [*sorted({row["kind"] for row in rows}), ""]:
        of_kind = [row for row in rows if kind in ("", row["kind"])]
        wrong = sum(row["status"] != "correct" if honest else row["rewarded"] for row in of_kind)
        statuses = Counter(row["status"] for row in of_kind).most_common()
        cells = [
            kind or "**all**",
            str(len({row["module"] for row in of_kind})),
            str(len(of_kind)),
            str(wrong),
            ", ".join(f"{status} {count}" for status, count in statuses),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", _device_line(report)])


def summary_table(results: Path = RESULTS) -> str:
    """One row for each corpus and device."""
    lines = ["| corpus | device | modules | runs | wrong verdicts |", "|---|---|---:|---:|---:|"]
    for name in CORPORA:
        report = _read(results / f"corpus-{name}.json")
        cells = [report["corpus"], report["device"]["name"], str(report["modules"]), str(report["runs"])]
        lines.append(f"| {' | '.join(cells)} | {len(report['wrong'])} |")
    return "\n".join(lines)


def suite_table(name: str, as_rows: Callable[[list[dict[str, Any]]], str], results: Path = RESULTS) -> str:
    """A row for each task of a suite, and on what it was measured.

    Args:
        name: Name of the results, without their ending.
        as_rows: Makes Markdown of their rows.
        results: Where they are.
    """
    report = _read(results / f"{name}.json")
    return f"{_device_line(report)}\n\n{as_rows(report['rows'])}"


CORPORA = ("exploits-cpu", "exploits-h200", "honest-cpu", "honest-h200")
TABLES: dict[Path, dict[str, Callable[[], str]]] = {
    README: {"pilot-h200": pilot_table, "step-latency": latency_table},
    VERDICTS: {
        "summary": summary_table,
        **{f"corpus-{name}": partial(corpus_table, name) for name in CORPORA},
    },
    CORE: {"core-h200": partial(suite_table, "core-h200", core_table.as_markdown)},
    KERNELBENCH: {
        "kernelbench-h200": partial(suite_table, "kernelbench-h200", kernelbench_table.as_markdown)
    },
}


def with_tables(text: str, tables: dict[str, Callable[[], str]]) -> str:
    """A page with each of its tables made anew.

    Raises:
        ValueError: A table has no place in the text.
    """
    for name, table in tables.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        place = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
        if not place.search(text):
            raise ValueError(f"The page has no lines {begin!r} and {end!r}.")
        made = f"{begin}\n{table()}\n{end}"
        text = place.sub(lambda _, made=made: made, text)
    return text


def main() -> None:
    """Rewrite the pages, or say whether one would change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if something would change")
    options = parser.parse_args()
    for page, tables in TABLES.items():
        before = page.read_text(encoding="utf-8")
        after = with_tables(before, tables)
        if options.check and after != before:
            raise SystemExit(
                f"The tables of {page.name} are not those of the results: run benchmarks.readme_table."
            )
        if after != before:
            page.write_text(after, encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def _device_line(report: dict[str, Any]) -> str:
    device = report["device"]
    of_device = f"{device['name']}, torch {device['torch']}, triton {device['triton']}"
    return f"{of_device}, commit {report['commit']}, {report['date']}."


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
