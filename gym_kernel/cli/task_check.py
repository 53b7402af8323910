"""``gym-kernel tasks --check``: the linter over tasks."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gym_kernel.cli.task_table import aligned
from gym_kernel.evaluator.device_choice import resolve_device
from gym_kernel.tasks import Task, TaskScale

if TYPE_CHECKING:
    from gym_kernel.linter import TaskReport

__all__ = ["check_tasks"]

_SOUND, _UNSOUND = 0, 1
# Rules that find one impostor after another; this module does not import torch, and the linter's package does.
_IMPOSTORS = frozenset({"null_candidate", "lower_precision", "missing_clamp"})
_MOST_LINES = 3


def check_tasks(tasks: Sequence[Task], device: str, as_json: bool, limit_s: float) -> int:
    """Lint tasks and print what was found.

    Args:
        tasks: Which.
        device: Device to run them on.
        as_json: Print a JSON list of reports instead of a table.
        limit_s: Longest that one task may take, in seconds.

    Returns:
        The exit code: 0 where every task is sound, else 1.
    """
    # Here and not above: they import torch, which listing tasks can do without.
    from tqdm import tqdm

    from gym_kernel.linter import LintProcess

    if resolve_device(device) == "cpu":
        _warn_of_large(tasks)
    bar = tqdm(tasks, desc="Checking tasks", unit="task", disable=None, leave=False)
    reports = []
    with LintProcess(device, limit_s) as process:
        for task in bar:
            bar.set_postfix_str(task.id)
            reports.append(process.lint(task))
    print(json.dumps([_as_json(report) for report in reports], indent=2) if as_json else _as_text(reports))
    return _SOUND if all(report.sound for report in reports) else _UNSOUND


def _warn_of_large(tasks: Sequence[Task]) -> None:
    large = [task.base_id for task in tasks if not all(_small_sizes(task))]
    if not large:
        return
    more = f" and {len(large) - _MOST_LINES} more" if len(large) > _MOST_LINES else ""
    print(
        f"No small sizes: {', '.join(large[:_MOST_LINES])}{more}. On a CPU they run at the sizes that their modules "
        'have, which may take minutes. Give each of their shapes "small" sizes, in the entry "shapes" of TASK.',
        file=sys.stderr,
        flush=True,
    )


def _small_sizes(task: Task) -> list[dict[str, int]]:
    """Those of each shape that is checked."""
    if task.shapes and task.id == task.base_id:
        return [shape.small for shape in task.shapes]
    return [task.sizes_at(TaskScale.SMALL)]


def _as_text(reports: Sequence[TaskReport]) -> str:
    table = aligned(
        ("TASK", "SHAPES", "KINDS", "IMPOSTORS", "MEMORY", "ERRORS", "WARNINGS"),
        [_row(each) for each in reports],
    )
    sound = sum(report.sound for report in reports)
    if len(reports) == 1:
        total = f"The task is {'sound' if sound else 'not sound'} on {reports[0].device}."
    else:
        total = f"{sound} of {len(reports)} tasks are sound on {reports[0].device}."
    return "\n\n".join(part for part in (table, "\n".join(_lines(reports)), total) if part)


def _row(report: TaskReport) -> tuple[str, ...]:
    memory = max(
        (shape.memory_gib for shape in report.shapes), key=lambda gib: -1.0 if math.isnan(gib) else gib
    )
    return (
        report.task_id,
        str(len(report.shapes)),
        str(min(len(shape.kinds_used) for shape in report.shapes)),
        str(max(shape.candidates for shape in report.shapes)),
        "?" if math.isnan(memory) else f"{memory:.1f} GiB",
        str(len(report.errors)),
        str(len(report.warnings)),
    )


def _lines(reports: Sequence[TaskReport]) -> list[str]:
    lines = []
    for report in reports:
        base = report.task_id.partition("@")[0]
        # An impostor that passes at one shape mostly passes at all of them, and has many like it.
        told: Counter[tuple[str, str]] = Counter()
        for shape in report.shapes:
            place = f"{base}@{shape.shape}" if shape.shape else base
            for finding in shape.findings:
                kind = (finding.severity.value, finding.rule.value)
                told[kind] += 1
                if finding.rule.value not in _IMPOSTORS or told[kind] <= _MOST_LINES:
                    lines.append(f"{kind[0]}: {place}: {kind[1]}: {finding.message}")
            if shape.kinds_dropped:
                lines.append(f"note: {place}: not judged on {', '.join(shape.kinds_dropped)} inputs.")
        lines += [
            f"{severity}: {base}: {rule}: {count - _MOST_LINES} more like these, all shapes together; --json has them."
            for (severity, rule), count in told.items()
            if rule in _IMPOSTORS and count > _MOST_LINES
        ]
    return lines


def _as_json(report: TaskReport) -> dict[str, Any]:
    # JSON has no NaN: what is not known is null.
    shapes = [
        {
            **dataclasses.asdict(shape),
            "memory_gib": None if math.isnan(shape.memory_gib) else shape.memory_gib,
        }
        for shape in report.shapes
    ]
    return {"id": report.task_id, "device": report.device, "sound": report.sound, "shapes": shapes}
