"""Draw what the benchmarks measured, each picture beside its report.

    python -m benchmarks.pictures benchmarks/results/latency-h200.json ...

The benchmarks do so themselves where matplotlib is installed; from a machine where it is not, bring the report and draw
it here.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.timed_env import PARTS

__all__ = ["PictureUnavailable", "draw_report"]

# Okabe and Ito's colours, told apart by people who do not see red and green.
_COLOURS = ("#8a8a8a", "#0072b2", "#009e73", "#56b4e9", "#e69f00", "#d55e00", "#cc79a7")
_INK = "#333333"
_PART_NAMES = {
    "queue_s": "queue",
    "compile_s": "load and compile",
    "correctness_s": "correctness",
    "timing_s": "timing",
    "rest_s": "rest of the judge",
    "transport_s": "transport",
    "env_s": "environment",
}
# Marks of what bounds a level of throughput.
_BOUNDS = {"lane": "o", "compile slots": "s", "worker supply": "^", "submissions in flight": "D"}
_BYTES_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class PictureUnavailable(Exception):
    """A picture cannot be drawn; the message says what to do."""


def draw_report(path: Path) -> Path:
    """Draw one report.

    Args:
        path: A report of one of the benchmarks that have a picture.

    Returns:
        The PNG beside it.

    Raises:
        PictureUnavailable: matplotlib is missing, or there is no picture for this report.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PictureUnavailable(
            f"it needs matplotlib. pip install matplotlib, then python -m benchmarks.pictures {path}"
        ) from error
    report = json.loads(path.read_text(encoding="utf-8"))
    draw = _PICTURES.get(report["benchmark"])
    if draw is None:
        raise PictureUnavailable(f"{path} is a report of {report['benchmark']}, which has none.")
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure, report)
    picture = path.with_suffix(".png")
    figure.savefig(picture, dpi=150)
    return picture


def _draw_latency(figure: Any, report: dict[str, Any]) -> None:
    """Stacked bars, warm and cold, for each kernel; those that wait for a C++ compiler on an axis of their own."""
    triton = [row for row in report["rows"] if row["language"] == "triton"]
    groups = [rows for rows in (triton, [row for row in report["rows"] if row not in triton]) if rows]
    figure.set_size_inches(10, 1.2 + 0.7 * len(groups) + 1.2 * len(report["rows"]))
    heights = [len(rows) for rows in groups]
    axes = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, rows in zip(axes, groups, strict=True):
        _draw_steps(axis, rows)
    axes[-1].set_xlabel("seconds (medians by stage; the line spans the quartiles of the whole step)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(PARTS), frameon=False, fontsize=9)
    _title(figure, "Latency of env.step, every source new", report)


def _draw_steps(axis: Any, rows: list[dict[str, Any]]) -> None:
    bars = []
    for row in rows:
        bars.append(
            (f"{row['task']}\nwarm ({row['steps']} steps)", row["median_s"], row["quartiles_s"]["step_s"])
        )
        bars.append((f"{row['task']}\nfirst step", row["first_step_s"], None))
    for y, (_, times, quartiles) in enumerate(bars):
        end = 0.0
        for part, colour in zip(PARTS, _COLOURS, strict=True):
            label = _PART_NAMES[part] if y == 0 else None
            axis.barh(y, times[part], left=end, color=colour, height=0.62, label=label)
            end += times[part]
        if quartiles is not None:
            axis.plot(quartiles, [y, y], color=_INK, linewidth=1.6, marker="|", markersize=9)
            end = max(end, *quartiles)
        beside = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
        axis.annotate(f"{times['step_s']:.3f} s", (end, y), **beside)
    axis.set_yticks(range(len(bars)), [label for label, _, _ in bars])
    axis.invert_yaxis()
    axis.margins(x=0.12)
    axis.set_xlim(left=0)
    _plain(axis, grid="x")


def _draw_throughput(figure: Any, report: dict[str, Any]) -> None:
    """Evaluations a minute, and occupancy of the lane, against submissions in flight."""
    figure.set_size_inches(11, 4.8)
    left, right = figure.subplots(1, 2)
    numbers = sorted({row["in_flight"] for row in report["rows"]})
    tasks = list(dict.fromkeys(row["task"] for row in report["rows"]))
    for task, colour in zip(tasks, cycle(_COLOURS[1:]), strict=False):
        rows = [row for row in report["rows"] if row["task"] == task]
        for axis, key in ((left, "per_minute"), (right, "lane_occupancy")):
            line = [(row["in_flight"], row[key]) for row in rows]
            axis.plot(*zip(*line, strict=True), color=colour, label=task)
            for row, place in zip(rows, line, strict=True):
                axis.plot(*place, color=colour, marker=_BOUNDS[row["bound_by"]], markersize=8)
        for row in rows:
            _label(left, f"{row['per_minute']:.0f}", (row["in_flight"], row["per_minute"]))
    left.set_ylabel("evaluations a minute")
    right.set_ylabel("share of time with a submission on the lane")
    right.set_ylim(0, 1.08)
    left.set_ylim(0, 1.15 * max(row["per_minute"] for row in report["rows"]))
    for axis in (left, right):
        axis.set_xscale("log", base=2)
        axis.set_xticks(numbers, [str(number) for number in numbers])
        axis.margins(x=0.14)
        axis.set_xlabel("submissions in flight")
        _plain(axis, grid="y")
    left.legend(frameon=False, loc="lower right")
    for bound in dict.fromkeys(row["bound_by"] for row in report["rows"]):
        right.plot([], [], color=_INK, linestyle="", marker=_BOUNDS[bound], label=f"bound by {bound}")
    handles, labels = right.get_legend_handles_labels()
    right.legend(handles[len(tasks) :], labels[len(tasks) :], frameon=False, loc="lower right")
    _title(figure, "Throughput on one device, every source new", report)


def _label(axis: Any, text: str, place: tuple[float, float]) -> None:
    axis.annotate(text, place, xytext=(0, 8), textcoords="offset points", ha="center", fontsize=8)


def _draw_timing_accuracy(figure: Any, report: dict[str, Any]) -> None:
    """Against CUPTI, against known bytes, and against itself."""
    figure.set_size_inches(14, 4.8)
    against, bandwidth, itself = figure.subplots(1, 3)
    rows = [row for row in report["rows"] if row["judged_us"]]
    x = [row["judged_us"] for row in rows]
    compared = [row for row in rows if row["judged_over_cupti"]]
    if compared:
        ratios = [row["judged_over_cupti"] for row in compared]
        against.plot([row["judged_us"] for row in compared], ratios, color=_COLOURS[1], marker="o")
        for row in compared:
            gap_us = row["judged_us"] - row["cupti_us"]
            place = (row["judged_us"], row["judged_over_cupti"])
            _label(against, f"{gap_us:+.1f} us", place)
        against.axhline(1, color=_INK, linewidth=0.8)
        against.margins(y=0.2)
    else:
        against.text(0.5, 0.5, "no durations by CUPTI", transform=against.transAxes, ha="center", color=_INK)
        against.set_yticks([])
    against.set_ylabel("judged time / CUPTI's duration")
    bandwidth.plot(x, [row["gb_per_s"] for row in rows], color=_COLOURS[2], marker="o")
    for row in rows:
        place = (row["judged_us"], row["gb_per_s"])
        _label(bandwidth, _size(row["moved_bytes"]), place)
    bandwidth.set_ylabel("GB/s by the bytes that must be moved")
    bandwidth.margins(y=0.15)
    bandwidth.set_ylim(bottom=0)
    _draw_itself(itself, rows, x)
    for axis in (against, bandwidth, itself):
        axis.set_xscale("log")
        axis.set_xticks(x, [f"{each:,.0f}" if each >= 100 else f"{each:.3g}" for each in x], fontsize=8)
        axis.set_xticks([], minor=True)
        axis.margins(x=0.12)
        axis.set_xlabel("judged time (us, median of the quiet evaluations)")
        _plain(axis, grid="y")
    _title(figure, "Accuracy of the judge's times (x + 2 * y in Triton)", report)


def _draw_itself(axis: Any, rows: list[dict[str, Any]], x: list[float]) -> None:
    """Single evaluations over the median of the quiet ones."""
    kinds = (("quiet", "quiet_us", "o", _COLOURS[1]), ("every core busy", "busy_us", "s", _COLOURS[5]))
    for label, key, marker, colour in kinds:
        points = [(row["judged_us"], each / row["judged_us"]) for row in rows for each in row[key]]
        axis.plot(
            [point[0] for point in points],
            [point[1] for point in points],
            linestyle="",
            marker=marker,
            markersize=5,
            alpha=0.6,
            color=colour,
            label=label,
        )
    fresh = [row["fresh_over_warm"] if row["fresh_over_warm"] else math.nan for row in rows]
    axis.plot(x, fresh, linestyle="", marker="x", markersize=8, color=_INK, label="fresh host")
    axis.axhline(1, color=_INK, linewidth=0.8)
    axis.set_ylabel("one evaluation / median of the quiet ones")
    axis.margins(y=0.15)
    axis.legend(frameon=False, fontsize=9)


def _draw_vs_kernelbench(figure: Any, report: dict[str, Any]) -> None:
    """Every run of both sides on a logarithmic axis, a line for each kernel."""
    rows = report["rows"]
    figure.set_size_inches(10, 2.2 + 0.9 * len(rows))
    axis = figure.subplots()
    axis.set_xscale("log")
    for y, row in enumerate(rows):
        ours_s = [times["step_s"] for times in row["ours_samples_s"]]
        theirs_s = [
            run["seconds"] for run in row["kernelbench_runs"] if not run["needs"] and not run["problem"]
        ]
        sides = (
            (theirs_s, row["kernelbench_median_s"], _COLOURS[5], "KernelBench, a fresh process"),
            (ours_s, row["ours_median_s"], _COLOURS[1], "gym-kernel, a warm env.step"),
        )
        for samples, middle, colour, name in sides:
            label = name if y == 0 else None
            style: dict[str, Any] = {"color": colour, "linestyle": "", "marker": "o"}
            axis.plot(samples, [y] * len(samples), markersize=5, alpha=0.5, **style)
            axis.plot([middle] if middle else [], [y] if middle else [], markersize=10, label=label, **style)
            if middle:
                above = {"xytext": (0, 10), "textcoords": "offset points", "ha": "center", "color": colour}
                axis.annotate(f"{middle:.3g} s", (middle, y), **above)
        if row["ratio"]:
            axis.plot([row["ours_median_s"], row["kernelbench_median_s"]], [y, y], color="#bbbbbb", zorder=0)
    names = [row["kernel"] + _compared(row) for row in rows]
    axis.set_yticks(range(len(rows)), names)
    axis.set_ylim(len(rows) - 0.5, -0.6)
    axis.margins(x=0.1)
    _plain_numbers(axis)
    axis.set_xlabel("seconds for one evaluation (logarithmic; large: the median)")
    _plain(axis, grid="x")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    _title(figure, "The same kernels, by turns", report)


def _compared(row: dict[str, Any]) -> str:
    if row["ratio"]:
        return f"\nKernelBench / gym-kernel: {row['ratio']:.1f}"
    needs = any(run["needs"] for run in row["kernelbench_runs"])
    return f"\nKernelBench: {'needs a GPU' if needs else 'no time'}"


def _plain_numbers(axis: Any) -> None:
    """Ticks of a logarithmic axis as numbers that are read without powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def _size(count: int) -> str:
    """Bytes with a unit, to three digits."""
    for unit, name in _BYTES_UNITS:
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} B"


def _plain(axis: Any, grid: str) -> None:
    axis.grid(axis=grid, color="#e4e4e4", linewidth=0.7)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _title(figure: Any, text: str, report: dict[str, Any]) -> None:
    device = report["device"]
    under = f"{device['name']}, torch {device['torch']}, triton {device['triton']}, {report['date']}"
    figure.suptitle(f"{text}\n{under}", x=0.01, ha="left", fontsize=10, color=_INK)


_PICTURES: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "latency": _draw_latency,
    "throughput": _draw_throughput,
    "timing-accuracy": _draw_timing_accuracy,
    "vs-kernelbench": _draw_vs_kernelbench,
}


def main() -> None:
    """Draw the reports that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reports", type=Path, nargs="+")
    for path in parser.parse_args().reports:
        try:
            print(draw_report(path))
        except PictureUnavailable as error:
            raise SystemExit(f"There is no picture: {error}") from error


if __name__ == "__main__":
    main()
