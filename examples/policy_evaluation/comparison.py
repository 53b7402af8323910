"""Two runs of one protocol, task by task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from policy_evaluation.journal import Run
from policy_evaluation.policy import PolicyError
from policy_evaluation.protocol import differences
from policy_evaluation.summary import ALL, Outcome, Scores, View, groups, number, outcomes, scores

__all__ = ["Comparison", "Pairs", "compare"]


@dataclass(frozen=True)
class Pairs:
    """Tasks counted one by one.

    Attributes:
        better: Tasks whose reward rose by more than the tolerance.
        same: Tasks whose reward stayed within it.
        worse: Tasks whose reward fell by more than it.
        gained: Tasks that became correct.
        kept: Tasks that are correct in both.
        forgotten: Tasks that are correct no more.
        speed_ratio: Geometric mean over the kept ones of time before over time after; ``None`` without any.
    """

    better: int
    same: int
    worse: int
    gained: int
    kept: int
    forgotten: int
    speed_ratio: float | None


@dataclass(frozen=True)
class _Cell:
    """One group in one view."""

    group: str
    view: View
    before: Scores
    after: Scores
    pairs: Pairs


@dataclass(frozen=True)
class Comparison:
    """What changed between two runs. Tasks that the evaluator spoilt in either are left out of both.

    Attributes:
        before: The first run.
        after: The second.
        pairs: Outcomes before and after of every task that counts, in order.
        left_out: Ids of those that do not.
        tolerance: Difference of rewards up to which two count as the same.
    """

    before: Run
    after: Run
    pairs: tuple[tuple[Outcome, Outcome], ...]
    left_out: tuple[str, ...]
    tolerance: float

    def cells(self) -> list[_Cell]:
        """Every group in every view."""
        return [
            self._cell(group, view)
            for view in View
            for group in groups(self.before)
            if group == ALL or any(one.group == group for one, _ in self.pairs)
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything in it, for ``json.dumps``."""
        return {
            "before": _identity(self.before),
            "after": _identity(self.after),
            "protocol": asdict(self.before.protocol),
            "tolerance": self.tolerance,
            "left_out": list(self.left_out),
            "notes": self.notes(),
            "groups": [
                {**asdict(cell), "view": cell.view.value, "difference": _difference(cell.before, cell.after)}
                for cell in self.cells()
            ],
            "tasks": [
                {"task": one.task, "group": one.group, "before": _figures(one), "after": _figures(other)}
                for one, other in self.pairs
            ],
        }

    def to_markdown(self) -> str:
        """Tables by group and by task."""
        protocol = self.before.protocol
        parts = [
            f"# {self.before.policy.label()} -> {self.after.policy.label()}",
            f"{len(self.pairs)} tasks, {protocol.turns} submissions each, judged on {protocol.device}; every cell "
            "is before -> after. Better and worse count tasks whose reward moved by more than "
            f"{self.tolerance:g}; speedup over eager and roofline fraction are over each run's correct "
            "submissions; kernel speed is time before over time after, over the tasks that both solve.",
            *self.notes(),
        ]
        for view in View:
            cells = [cell for cell in self.cells() if cell.view is view]
            parts += [f"## {view.value.capitalize()}", _group_table(cells, view)]
        parts += ["## Tasks", self._task_table()]
        return "\n\n".join(parts) + "\n"

    def notes(self) -> list[str]:
        """What a reader should know before trusting small differences."""
        notes = []
        if self.left_out:
            notes.append(f"Left out, because the evaluator failed in a run: {', '.join(self.left_out)}.")
        old, new = self.before.machine.versions(), self.after.machine.versions()
        changed = [f"{name} {old[name]} -> {new[name]}" for name in old if old[name] != new[name]]
        if changed:
            notes.append(f"Not the same software: {', '.join(changed)}.")
        if any(row.contended for run in (self.before, self.after) for row in run.rows):
            notes.append("Another process computed on the device during some evaluations; times may be long.")
        return notes

    def _cell(self, group: str, view: View) -> _Cell:
        chosen = [pair for pair in self.pairs if group in (ALL, pair[0].group)]
        return _Cell(
            group,
            view,
            scores([one for one, _ in chosen], view),
            scores([other for _, other in chosen], view),
            self._count(chosen, view),
        )

    def _count(self, chosen: Sequence[tuple[Outcome, Outcome]], view: View) -> Pairs:
        rows = [(one.at(view), other.at(view)) for one, other in chosen]
        moves = [other.reward - one.reward for one, other in rows]
        solved = [(one.correct, other.correct) for one, other in rows]
        logs = [
            math.log(one.runtime_us / other.runtime_us)
            for one, other in rows
            if one.correct and other.correct and one.runtime_us and other.runtime_us
        ]
        return Pairs(
            better=sum(move > self.tolerance for move in moves),
            same=sum(abs(move) <= self.tolerance for move in moves),
            worse=sum(move < -self.tolerance for move in moves),
            gained=solved.count((False, True)),
            kept=solved.count((True, True)),
            forgotten=solved.count((True, False)),
            speed_ratio=math.exp(sum(logs) / len(logs)) if logs else None,
        )

    def _task_table(self) -> str:
        lines = [
            "| task | group | first status | first reward | best status | best reward | return |",
            "|---|---|---|---:|---|---:|---:|",
        ]
        for one, other in self.pairs:
            cells = [one.task, one.group]
            for view in View:
                old, new = one.at(view), other.at(view)
                cells += [f"{old.status} -> {new.status}", _moved(old.reward, new.reward)]
            lines.append(f"| {' | '.join(cells)} | {_moved(one.total, other.total)} |")
        return "\n".join(lines)


def compare(before: Run, after: Run, tolerance: float = 0.05) -> Comparison:
    """Pair two runs.

    Args:
        before: The first run.
        after: The second.
        tolerance: Difference of rewards up to which two count as the same; the clock alone moves a reward a little.

    Raises:
        PolicyError: The runs' protocols differ.
    """
    found = differences(before.protocol, after.protocol) + _decoding_difference(before, after)
    if found:
        raise PolicyError(
            f"These runs cannot be compared: {'; '.join(found)}. Evaluate both policies with the same options on "
            "the same kind of device."
        )
    ones, others = outcomes(before), outcomes(after)
    ids = [key.id for key in before.protocol.tasks]
    usable = [
        task_id for task_id in ids if all(task_id in run and not run[task_id].lost for run in (ones, others))
    ]
    return Comparison(
        before=before,
        after=after,
        pairs=tuple((ones[task_id], others[task_id]) for task_id in usable),
        left_out=tuple(task_id for task_id in ids if task_id not in usable),
        tolerance=tolerance,
    )


def _decoding_difference(before: Run, after: Run) -> list[str]:
    one, other = before.policy.decoding, after.policy.decoding
    # Replies that were written beforehand have none.
    if one is None or other is None or one == other:
        return []
    return [f"the decoding is {asdict(one)} in one and {asdict(other)} in the other"]


def _identity(run: Run) -> dict[str, Any]:
    return {"policy": asdict(run.policy), "machine": asdict(run.machine)}


def _figures(outcome: Outcome) -> dict[str, Any]:
    return {
        "rewards": [row.reward for row in outcome.rows],
        "statuses": [row.status for row in outcome.rows],
        "return": outcome.total,
    }


def _difference(before: Scores, after: Scores) -> dict[str, float | None]:
    old, new = asdict(before), asdict(after)
    return {
        key: None if old[key] is None or new[key] is None else new[key] - old[key]
        for key in old
        if key not in ("tasks", "lost")
    }


def _group_table(cells: Sequence[_Cell], view: View) -> str:
    with_return = view is View.BEST
    heads = ["group", "tasks", "correct", "gained / forgotten", "mean reward"]
    heads += ["mean return"] if with_return else []
    heads += ["better / same / worse", "speedup over eager", "roofline fraction", "kernel speed"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for cell in cells:
        old, new, pairs = cell.before, cell.after, cell.pairs
        row = [
            cell.group,
            str(old.tasks),
            f"{old.correct} -> {new.correct} ({new.correct - old.correct:+d})",
            f"{pairs.gained} / {pairs.forgotten}",
            _moved(old.mean_reward, new.mean_reward),
        ]
        row += [_moved(old.mean_return, new.mean_return)] if with_return else []
        row += [
            f"{pairs.better} / {pairs.same} / {pairs.worse}",
            _moved(old.speedup, new.speedup),
            _moved(old.roofline_fraction, new.roofline_fraction),
            "-" if pairs.speed_ratio is None else f"x {pairs.speed_ratio:.3f} over {pairs.kept}",
        ]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _moved(before: float | None, after: float | None) -> str:
    difference = "" if before is None or after is None else f" ({after - before:+.3f})"
    return f"{number(before)} -> {number(after)}{difference}"
