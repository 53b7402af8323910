"""``gym-kernel tasks --check``: the linter over tasks."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gym_kernel.cli.task_table import aligned
from gym_kernel.tasks import Task

if TYPE_CHECKING:
    from gym_kernel.linter import TaskReport

__all__ = ["check_tasks"]

_SOUND, _UNSOUND = 0, 1


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

    bar = tqdm(tasks, desc="Checking tasks", unit="task", disable=None, leave=False)
    reports = []
    with LintProcess(device, limit_s) as process:
        for task in bar:
            bar.set_postfix_str(task.id)
            reports.append(process.lint(task))
    print(json.dumps([_as_json(report) for report in reports], indent=2) if as_json else _as_text(reports))
    return _SOUND if all(report.sound for report in reports) else _UNSOUND


def _as_text(reports: Sequence[TaskReport]) -> str:
    table = aligned(
        ("TASK", "SHAPES", "KINDS", "IMPOSTORS", "MEMORY", "ERRORS", "WARNINGS"),
        [_row(each) for each in reports],
    )
    sound = sum(report.sound for report in reports)
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
        for shape in report.shapes:
            base = report.task_id.partition("@")[0]
            place = f"{base}@{shape.shape}" if shape.shape else base
            lines += [f"{f.severity.value}: {place}: {f.rule.value}: {f.message}" for f in shape.findings]
            if shape.kinds_dropped:
                lines.append(f"note: {place}: not judged on {', '.join(shape.kinds_dropped)} inputs.")
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
