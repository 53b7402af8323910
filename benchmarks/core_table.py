"""Lint every built-in task at every shape, and have the judge measure its floor and its eager reference.

    python -m benchmarks.core_table [--device cuda:0] [--part 1/2] [--limit 400] [--only relu core/train/scans]
    python -m benchmarks.core_table --merge A.json B.json

The official sizes on a GPU, the small ones on a CPU. The exit status is 1 where a task is unsound, where a floor lies
above the eager time, or where something could not be found out.
"""

from __future__ import annotations

import argparse
import math
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tqdm import tqdm

from benchmarks.suite_rows import Part, Results, add_part_options, as_table, number, still_to_do, write_merged
from gym_kernel.errors import GymKernelError, TaskError
from gym_kernel.evaluator.briefing import Briefing
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.linter import LintProcess, Rule, Severity, ShapeReport
from gym_kernel.tasks import Task, load

TABLE = "core"

_SUITES = ("pilot", "core")
_IMPOSTORS = (Rule.NULL_CANDIDATE, Rule.LOWER_PRECISION, Rule.MISSING_CLAMP)
_PASSED = re.compile(r"is reproduced by (.+?) on every kind of inputs")
# What was begun before the limit may end after it.
_GRACE_S = 150.0
_LARGE_GIB = 12.0
_MIB = 1 << 20


@dataclass
class Line:
    """A task at one shape, and what has come to light.

    Attributes:
        task: The task, at the shape.
        position: Place in the suite.
        lint: The linter's report.
        briefing: The judge's.
        lint_s: Seconds that the linter took, its wait for the device included.
        brief_s: Seconds that the judge took, likewise.
        failures: What kept the linter or the judge from an answer.
        task_errors: What the judge says is wrong with the task itself.
    """

    task: Task
    position: int
    lint: ShapeReport | None = None
    briefing: Briefing | None = None
    lint_s: float = float("nan")
    brief_s: float = float("nan")
    failures: list[str] = field(default_factory=list)
    task_errors: list[str] = field(default_factory=list)

    @property
    def is_finished(self) -> bool:
        """Whether linter and judge have both answered."""
        return not (math.isnan(self.lint_s) or math.isnan(self.brief_s))

    @property
    def is_begun(self) -> bool:
        """Whether one of them has, or was given up."""
        return not (math.isnan(self.lint_s) and math.isnan(self.brief_s)) or bool(self.failures)

    @property
    def errors(self) -> list[str]:
        """What the linter and the judge hold against the task."""
        return [*self._found(Severity.ERROR), *self.task_errors]

    @property
    def warnings(self) -> list[str]:
        """What the linter holds worth a look."""
        return self._found(Severity.WARNING)

    @property
    def is_above(self) -> bool:
        """Whether the eager reference is faster than the floor says is possible."""
        briefing = self.briefing
        return briefing is not None and briefing.roofline.t_min_us > briefing.reference.median_us

    @property
    def complaints(self) -> list[str]:
        """Everything that makes the line unsound, as sentences."""
        found = [*self.errors, *(f"INFRASTRUCTURE: {failure}" for failure in self.failures)]
        if self.is_above:
            assert self.briefing is not None
            found.append(
                f"FLOOR ABOVE EAGER: t_min {self.briefing.roofline.t_min_us:.2f} us, eager "
                f"{self.briefing.reference.median_us:.2f} us"
            )
        return found

    def row(self) -> dict[str, Any]:
        """The line of the report."""
        lint, briefing = self.lint, self.briefing
        return {
            "id": self.task.id,
            "position": self.position,
            "finished": self.is_finished,
            "task": self.task.base_id,
            "shape": self.task.id.partition("@")[2],
            "suite": self.task.suite,
            "family": self.task.family,
            "level": self.task.level,
            "sound": not self.complaints,
            "errors": self.errors,
            "warnings": self.warnings,
            "infrastructure_errors": list(self.failures),
            "kinds_used": list(lint.kinds_used) if lint else [],
            "kinds_dropped": list(lint.kinds_dropped) if lint else [],
            "impostors_tried": lint.candidates if lint else None,
            "impostors_passed": self._passed(),
            "memory_gib": lint.memory_gib if lint and not math.isnan(lint.memory_gib) else None,
            "memory_gib_declared": self.task.memory_gib,
            "lint_s": None if math.isnan(self.lint_s) else self.lint_s,
            "brief_s": None if math.isnan(self.brief_s) else self.brief_s,
            **({} if briefing is None else _measured(briefing)),
            "floor_above_eager": self.is_above,
        }

    def _found(self, severity: Severity) -> list[str]:
        findings = self.lint.findings if self.lint else ()
        return [f"{each.rule.value}: {each.message}" for each in findings if each.severity is severity]

    def _passed(self) -> list[str]:
        findings = self.lint.findings if self.lint else ()
        matches = (_PASSED.search(each.message) for each in findings if each.rule in _IMPOSTORS)
        return [match[1] for match in matches if match]


def _measured(briefing: Briefing) -> dict[str, Any]:
    roofline, eager = briefing.roofline, briefing.reference
    return {
        "input_dtypes": list(dict.fromkeys(tensor.dtype for tensor in briefing.inputs)),
        "output_dtypes": list(dict.fromkeys(tensor.dtype for tensor in briefing.outputs)),
        "bytes": roofline.work.bytes,
        "flops": roofline.work.total_flops,
        "t_min_us": roofline.t_min_us,
        "bound": "bytes" if roofline.memory_bound else "FLOPs",
        "eager_us": eager.median_us,
        "eager_ci_us": eager.ci_us,
        "eager_samples": len(eager.samples_us),
        "t_min_by_eager": roofline.t_min_us / eager.median_us,
    }


def lines_of(tasks: Iterable[Task]) -> list[Line]:
    """Every task at every one of its shapes, each with its place in the built-in suites."""
    places = {task.id: place for place, task in enumerate(load(_SUITES))}
    lines = []
    for task in tasks:
        place = 100 * places.get(task.base_id, len(places))
        if task.id != task.base_id or not task.shapes:
            names = [shape.name for shape in task.shapes]
            shape = task.id.partition("@")[2]
            lines.append(Line(task, place + (names.index(shape) if shape in names else 0)))
            continue
        lines += [Line(task.at(shape.name), place + i) for i, shape in enumerate(task.shapes)]
    return lines


class Run:
    """Lints and measures lines on one device, on a thread each; they take turns in the lane of a GPU.

    Args:
        device: Device as the evaluator takes it.
        lint_limit_s: Longest that the linter may take over one line, in seconds.
    """

    def __init__(self, device: str, lint_limit_s: float) -> None:
        self._device = device
        self._lint_limit_s = lint_limit_s
        self._evaluator = Evaluator(EvaluatorConfig(device=device))
        # A task that leaves the judge with little memory of it.
        self.facts = self._evaluator.brief(load("matmul")[0]).device

    def close(self) -> None:
        """Leave the host."""
        self._evaluator.close()

    def answers(self, lines: Sequence[Line], limit_s: float) -> Iterator[Line]:
        """Work through the lines; gives each back whenever the linter or the judge has answered for it.

        Args:
            lines: Which. They are filled in.
            limit_s: Seconds after which no line is begun.
        """
        done: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
        begun: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
        deadline = time.monotonic() + limit_s
        for work in (partial(self._lint_all, lines, deadline, begun), partial(self._brief_all, begun)):
            threading.Thread(target=_forward, args=(work, done), daemon=True).start()
        at_work = 2
        while at_work:
            patience_s = max(deadline - time.monotonic(), 0.0) + _GRACE_S
            try:
                line = done.get(timeout=min(patience_s, threading.TIMEOUT_MAX))
            except queue.Empty:
                for late in (line for line in lines if line.is_begun and not line.is_finished):
                    late.failures.append("linter or judge gave no answer in time")
                    yield late
                return
            if line is None:
                at_work -= 1
            else:
                yield line

    def _lint_all(
        self, lines: Sequence[Line], deadline: float, begun: queue.SimpleQueue[Line | None]
    ) -> Iterator[Line]:
        """The judge follows, so that what is begun within the limit is finished by both."""
        large: list[Line] = []
        try:
            with LintProcess(self._device, self._lint_limit_s) as process:
                for line in lines:
                    if time.monotonic() > deadline:
                        return
                    started = time.monotonic()
                    try:
                        (line.lint,) = process.lint(line.task).shapes
                    except GymKernelError as error:
                        line.failures.append(f"the linter: {error}")
                    line.lint_s = time.monotonic() - started
                    large.append(line)
                    # What the judge needs for large ones it keeps, and the next large lint would lack it.
                    if line.lint is None or not line.lint.memory_gib > _LARGE_GIB:
                        _move(large, begun)
                    yield line
        finally:
            _move(large, begun)
            begun.put(None)

    def _brief_all(self, begun: queue.SimpleQueue[Line | None]) -> Iterator[Line]:
        while (line := begun.get()) is not None:
            started = time.monotonic()
            try:
                line.briefing = self._evaluator.brief(line.task)
            except TaskError as error:
                line.task_errors.append(f"the judge: {error}")
            except GymKernelError as error:
                line.failures.append(f"the judge: {error}")
            line.brief_s = time.monotonic() - started
            yield line


def _move(lines: list[Line], to: queue.SimpleQueue[Line | None]) -> None:
    for line in lines:
        to.put(line)
    lines.clear()


def _forward(work: Callable[[], Iterator[Line]], done: queue.SimpleQueue[Line | None]) -> None:
    try:
        for line in work():
            done.put(line)
    finally:
        done.put(None)


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """One row for each task and shape, as ``docs/tasks.md`` shows it."""
    headline = (
        "task",
        "shape",
        "family",
        "dtypes",
        "errors:",
        "warnings:",
        "kinds:",
        "impostors passed:",
        "memory (GiB):",
        "moved (MiB):",
        "GFLOP:",
        "bound",
        "t_min (us):",
        "eager (us):",
        "t_min / eager:",
    )
    return as_table(headline, (_cells(row) for row in rows))


def _cells(row: dict[str, Any]) -> Sequence[str]:
    inputs, outputs = row.get("input_dtypes", []), row.get("output_dtypes", [])
    new = [dtype for dtype in outputs if dtype not in inputs]
    dtypes = ", ".join(inputs) + (f" to {', '.join(new)}" if new else "")
    used, dropped = len(row["kinds_used"]), len(row["kinds_dropped"])
    tried, passed = row["impostors_tried"], len(row["impostors_passed"])
    moved, flops = row.get("bytes"), row.get("flops")
    return (
        row["task"],
        row["shape"] or "-",
        row["family"] or row["suite"],
        dtypes or "-",
        str(len(row["errors"]) + len(row["infrastructure_errors"]) + row["floor_above_eager"]),
        str(len(row["warnings"])),
        f"{used} of {used + dropped}",
        "-" if tried is None else f"{passed} of {tried}",
        number(row["memory_gib"], 2),
        number(None if moved is None else moved / _MIB, 1),
        number(None if flops is None else flops / 1e9, 2),
        row.get("bound", "-"),
        number(row.get("t_min_us"), 1),
        number(row.get("eager_us"), 1),
        number(row.get("t_min_by_eager"), 3),
    )


def summary(rows: list[dict[str, Any]], not_begun: Sequence[str]) -> str:
    """What came out, in a sentence or two."""
    sound = sum(row["sound"] for row in rows)
    lost = sum(bool(row["infrastructure_errors"]) for row in rows)
    above = sum(row["floor_above_eager"] for row in rows)
    warned = sum(bool(row["warnings"]) for row in rows)
    text = (
        f"{sound} of {len(rows)} task-shapes are sound; {warned} with warnings, {lost} with infrastructure errors, "
        f"{above} with a floor above the eager time."
    )
    unfinished = [row["id"] for row in rows if not row["finished"]]
    text += f" {len(unfinished)} unfinished: {', '.join(unfinished)}." if unfinished else ""
    return text + (
        f" {len(not_begun)} not begun, from {not_begun[0]} to {not_begun[-1]}." if not_begun else ""
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, or join its parts.

    Args:
        arguments: Those of the command line; None for this process's.

    Raises:
        SystemExit: Always, with the exit status.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_part_options(parser)
    parser.add_argument("--only", nargs="+", default=_SUITES, metavar="TASK", help="suites or tasks")
    parser.add_argument("--lint-limit", type=float, default=60.0, help="seconds for one task-shape's lint")
    parser.add_argument("--markdown", action="store_true", help="print the whole table as well")
    options = parser.parse_args(arguments)
    if options.merge:
        path, report = write_merged(options.merge, options.out)
        rows, not_begun = report["rows"], report["not_begun"]
    else:
        path, rows, not_begun = _run(options)
    if options.markdown:
        print(as_markdown(rows))
    print(summary(rows, not_begun))
    print(path)
    sys.exit(0 if rows and all(row["sound"] and row["finished"] for row in rows) else 1)


def _run(options: argparse.Namespace) -> tuple[Any, list[dict[str, Any]], list[str]]:
    started = time.monotonic()
    part: Part = options.part
    lines = lines_of(still_to_do(load(options.only), lambda task: task.id, options))
    run = Run(options.device, options.lint_limit)
    head: dict[str, Any] = {"table": TABLE, "part": f"{part.index}/{part.count}"}

    def write() -> None:
        head["not_begun"] = [line.task.id for line in lines if not line.is_begun]
        head["seconds"] = time.monotonic() - started
        results.write(line.row() for line in lines if line.is_begun)

    try:
        results = Results(f"{TABLE}{part.suffix}", run.facts, options.out, head)
        with tqdm(total=2 * len(lines), desc="lint and brief", unit="answer") as bar:
            told: set[str] = set()
            for line in run.answers(lines, options.limit - (time.monotonic() - started)):
                bar.update()
                for complaint in (f"ERROR {line.task.id}: {each}" for each in line.complaints):
                    if complaint not in told:
                        tqdm.write(complaint)
                    told.add(complaint)
                write()
        write()
    finally:
        run.close()
    rows = sorted((line.row() for line in lines if line.is_begun), key=lambda r: r["position"])
    return results.path, rows, list(head["not_begun"])


if __name__ == "__main__":
    main()
