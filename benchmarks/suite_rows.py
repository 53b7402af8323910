"""Rows of a long benchmark: which of its parts is run, how rows are kept as they come, and how parts are joined."""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.report import RESULTS, device_slug, write_report
from gym_kernel.evaluator.briefing import DeviceFacts

__all__ = [
    "Part",
    "Results",
    "add_part_options",
    "as_table",
    "merged",
    "number",
    "read_part",
    "still_to_do",
    "write_merged",
]

Item = TypeVar("Item")


@dataclass(frozen=True)
class Part:
    """One of several shares of a benchmark, for as many GPUs.

    Attributes:
        index: Which, from 1.
        count: How many there are.
    """

    index: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Part:
        """Read ``"1/2"``.

        Raises:
            argparse.ArgumentTypeError: It is no such thing.
        """
        first, _, second = text.partition("/")
        if not (first.isdecimal() and second.isdecimal() and 1 <= int(first) <= int(second)):
            raise argparse.ArgumentTypeError(f"{text!r} is not a part; write 1/2 for the first of two.")
        return cls(int(first), int(second))

    def of(self, items: Sequence[Item]) -> list[Item]:
        """Every ``count``-th item, so that each part gets some of every family."""
        return list(items[self.index - 1 :: self.count])

    @property
    def suffix(self) -> str:
        """What a file name says of it; empty where there is one part."""
        return "" if self.count == 1 else f"-part{self.index}of{self.count}"


class Results:
    """The rows of one run, written anew after each so that whatever ends the run loses none.

    Args:
        name: Name of the benchmark, with the part's suffix.
        facts: The device.
        folder: Where the JSON file goes.
        head: What else the file says, beside the rows.
    """

    def __init__(self, name: str, facts: DeviceFacts, folder: Path, head: dict[str, Any]) -> None:
        self.path = folder / f"{name}-{device_slug(facts)}.json"
        self._name, self._facts, self._folder, self._head = name, facts, folder, head

    def write(self, rows: Iterable[dict[str, Any]]) -> None:
        """Put these rows in the place of the file's."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # A kill in the middle of a write must leave the file before it whole.
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".rows-") as aside:
            body = {**self._head, "rows": sorted(rows, key=_place)}
            os.replace(write_report(self._name, self._facts, body, Path(aside)), self.path)


def merged(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join the reports of parts; of two rows for one thing the later one counts, unless it alone is unfinished.

    Args:
        reports: Reports of one benchmark on devices of one name.

    Returns:
        The first report with the rows of all, in the order of the suite, and every commit.

    Raises:
        SystemExit: They are of different benchmarks or devices.
    """
    for field in ("table", "device"):
        named = {_named(report, field) for report in reports}
        if len(named) > 1:
            raise SystemExit(
                f"These reports differ in {field}: {', '.join(sorted(named))}. Join those of one alone."
            )
    rows: dict[str, dict[str, Any]] = {}
    for row in (row for report in reports for row in report["rows"]):
        if row["id"] not in rows or row["finished"] or not rows[row["id"]]["finished"]:
            rows[row["id"]] = row
    commits = dict.fromkeys(report["commit"] for report in reports)
    begun = [name for report in reports for name in report["not_begun"] if name not in rows]
    return {
        **reports[0],
        "benchmark": reports[0]["table"],
        "commit": ", ".join(commits),
        "not_begun": list(dict.fromkeys(begun)),
        "rows": sorted(rows.values(), key=_place),
    }


def read_part(path: Path) -> dict[str, Any]:
    """A report that :class:`Results` wrote.

    Raises:
        SystemExit: The file is none.
    """
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if report["rows"] or report["table"]:
            return report
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(
            f"{path} is no report of this benchmark ({error}); name a JSON file that it wrote."
        ) from None
    raise SystemExit(f"{path} holds no rows; name a JSON file that this benchmark wrote.")


def write_merged(paths: Sequence[Path], folder: Path) -> tuple[Path, dict[str, Any]]:
    """Join the files of parts into one, ``<table>-<device>.json``.

    Args:
        paths: The files.
        folder: Where the joined file goes.

    Returns:
        Its path, and what it holds.
    """
    report = merged([read_part(path) for path in paths])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{report['table']}-{device_slug(DeviceFacts(**report['device']))}.json"
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return path, report


def still_to_do(
    items: Sequence[Item], name: Callable[[Item], str], options: argparse.Namespace
) -> list[Item]:
    """Those of the chosen part that no report named by ``--without`` has finished.

    Args:
        items: All there are.
        name: The ``id`` that an item's row has.
        options: Those of :func:`add_part_options`.

    Raises:
        SystemExit: A file is no report of such a benchmark.
    """
    reports = [read_part(path) for path in options.without]
    done = {row["id"] for report in reports for row in report["rows"] if row["finished"]}
    part: Part = options.part
    return part.of([item for item in items if name(item) not in done])


def add_part_options(parser: argparse.ArgumentParser) -> None:
    """The options that long benchmarks have in common."""
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--part", type=Part.parse, default=Part(), metavar="1/2", help="every second one alone"
    )
    parser.add_argument(
        "--without",
        type=Path,
        nargs="+",
        default=[],
        metavar="JSON",
        help="leave out what these reports have finished",
    )
    parser.add_argument(
        "--limit", type=float, default=math.inf, metavar="SECONDS", help="begin nothing after so long"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument(
        "--merge", type=Path, nargs="+", metavar="JSON", help="join the files of parts and stop"
    )


def as_table(headline: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown; a name with a colon at its end is a column of numbers, aligned to the right."""
    names = [name.removesuffix(":") for name in headline]
    rules = ["---:" if name.endswith(":") else "---" for name in headline]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (names, rules, *rows))


def number(value: float | None, digits: int) -> str:
    """A number with so many decimals, or a dash where it is not known."""
    return "-" if value is None or not math.isfinite(value) else f"{value:,.{digits}f}"


def _place(row: dict[str, Any]) -> tuple[int, str]:
    return row["position"], row["id"]


def _named(report: dict[str, Any], field: str) -> str:
    value = report[field]
    return str(value["name"] if isinstance(value, dict) else value)
