"""Rates and means of a run, by group and over all tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from gym_kernel.evaluator.status import Status
from gym_kernel.rewards import episode_return
from policy_evaluation.journal import Run
from policy_evaluation.protocol import Row

__all__ = [
    "ALL",
    "Outcome",
    "Scores",
    "View",
    "groups",
    "number",
    "outcomes",
    "scores",
    "summary",
    "summary_table",
]

ALL = "all"
"""Name of the group that holds every task."""


class View(str, Enum):
    """Which submission of a task is looked at."""

    FIRST = "first turn"
    BEST = "best attempt"


@dataclass(frozen=True)
class Outcome:
    """What became of one task.

    Attributes:
        task: Id of the task.
        group: Its group.
        rows: Its submissions, in order; at least one.
        total: ``r1 + discount * r2 + ...``.
    """

    task: str
    group: str
    rows: tuple[Row, ...]
    total: float

    @property
    def lost(self) -> bool:
        """Whether the evaluator failed in it, so that it says nothing about the policy."""
        return any(row.status == Status.INFRASTRUCTURE_ERROR.value for row in self.rows)

    def at(self, view: View) -> Row:
        """The submission that a view looks at; the best is the one of the highest reward."""
        return self.rows[0] if view is View.FIRST else max(self.rows, key=lambda row: row.reward)


@dataclass(frozen=True)
class Scores:
    """Figures of a group of tasks. Those that have no value, for want of a task, are ``None``.

    Attributes:
        tasks: Tasks counted.
        lost: Tasks left out because the evaluator failed in them.
        correct: Tasks with a correct submission.
        correct_rate: ``correct / tasks``.
        mean_reward: Mean reward, with 0 for what is not correct.
        mean_return: Mean of ``r1 + discount * r2``.
        speedup: Geometric mean over the correct ones of eager time over kernel time.
        roofline_fraction: Mean over the correct ones.
    """

    tasks: int
    lost: int
    correct: int
    correct_rate: float | None
    mean_reward: float | None
    mean_return: float | None
    speedup: float | None
    roofline_fraction: float | None


def outcomes(run: Run) -> dict[str, Outcome]:
    """Outcomes by task id, in the protocol's order."""
    found = {}
    for key in run.protocol.tasks:
        rows = tuple(row for row in run.rows if row.task == key.id)
        if rows:
            total = episode_return((row.reward for row in rows), run.protocol.discount)
            found[key.id] = Outcome(key.id, key.group, rows, total)
    return found


def groups(run: Run) -> tuple[str, ...]:
    """The groups of a run, in order, and :data:`ALL`."""
    return (*dict.fromkeys(key.group for key in run.protocol.tasks), ALL)


def scores(found: Sequence[Outcome], view: View) -> Scores:
    """Figures of some tasks.

    Args:
        found: Their outcomes.
        view: The submission that counts.
    """
    counted = [outcome for outcome in found if not outcome.lost]
    rows = [outcome.at(view) for outcome in counted]
    correct = [row for row in rows if row.correct]
    return Scores(
        tasks=len(rows),
        lost=len(found) - len(counted),
        correct=len(correct),
        correct_rate=_mean(float(row.correct) for row in rows),
        mean_reward=_mean(row.reward for row in rows),
        mean_return=_mean(outcome.total for outcome in counted),
        speedup=_geometric_mean(row.speedup for row in correct),
        roofline_fraction=_mean(row.roofline_fraction for row in correct),
    )


def summary(run: Run) -> dict[str, dict[str, Scores]]:
    """Figures by group, then by view."""
    found = outcomes(run)
    return {
        group: {view.value: scores(_of_group(found.values(), group), view) for view in View}
        for group in groups(run)
    }


def summary_table(run: Run) -> str:
    """The summary as a Markdown table."""
    lines = [
        "| group | submission | correct | mean reward | mean return | speedup (geometric) | roofline fraction |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for group, views in summary(run).items():
        for name, one in views.items():
            lines.append(
                f"| {group} | {name} | {one.correct}/{one.tasks} | {number(one.mean_reward)} "
                f"| {number(one.mean_return)} | {number(one.speedup)} | {number(one.roofline_fraction)} |"
            )
    return "\n".join(lines)


def number(value: float | None) -> str:
    """A figure for a table; a dash where there is none. Small ones keep three digits: a CPU is slow."""
    if value is None:
        return "-"
    return f"{value:.3g}" if 0 < value < 0.1 else f"{value:.3f}"


def _of_group(found: Iterable[Outcome], group: str) -> list[Outcome]:
    return [outcome for outcome in found if group in (ALL, outcome.group)]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _geometric_mean(values: Iterable[float | None]) -> float | None:
    mean = _mean(math.log(value) for value in values if value)
    return None if mean is None else math.exp(mean)
