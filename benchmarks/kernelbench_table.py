"""Hand every problem of KernelBench its own reference in as a submission: the judge must answer, and refuse each.

    python -m benchmarks.kernelbench_table --kernelbench KernelBench --level 1 --level 2 [--part 1/2] [--limit 400]
    python -m benchmarks.kernelbench_table --merge A.json B.json

What is handed in is what a policy does that does not want to write a kernel: the problem's text with ``Model`` under
the name ``ModelNew``. It computes the right values, with no kernels of its own. Official sizes on a GPU, small ones
on a CPU. The exit status is 1 where one is rewarded, or where the judge has no answer for it.
"""

from __future__ import annotations

import argparse
import math
import queue
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.suite_rows import Part, Results, add_part_options, as_table, number, still_to_do, write_merged
from gym_kernel.evaluator.briefing import DeviceFacts
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.submission import Submission
from gym_kernel.evaluator.verdict import Verdict
from gym_kernel.tasks import Task, load
from gym_kernel.tasks.kernelbench.problem import Problem
from gym_kernel.tasks.kernelbench.reading import read_problems
from gym_kernel.tasks.kernelbench.unsound import flaw_of

TABLE = "kernelbench"

_EXPECTED = Status.CHEATING
# A judge keeps the parameters and the shared memory of what it has judged; these are large here.
_PROBLEMS_A_JUDGE = 25
# What was begun before the limit may end after it.
_GRACE_S = 240.0
_SLOW_S = 20.0
_SHOWN_CHARS = 400


@dataclass
class Line:
    """A problem, and what came of its reference.

    Attributes:
        problem: As KernelBench has it.
        task: The same as a task.
        verdict: The judge's, once it is there.
        failure: What kept the judge from one.
        seconds: Wall-clock time of the evaluation, its wait for others in flight included.
    """

    problem: Problem
    task: Task
    verdict: Verdict | None = None
    failure: str = ""
    seconds: float = float("nan")

    @property
    def is_begun(self) -> bool:
        """Whether there is anything to tell."""
        return self.verdict is not None or bool(self.failure)

    @property
    def status(self) -> Status:
        """The verdict's, or an infrastructure error where there is none."""
        return self.verdict.status if self.verdict else Status.INFRASTRUCTURE_ERROR

    @property
    def note(self) -> str:
        """The judge's words, cut short; of a traceback the end."""
        if self.verdict is None:
            return self.failure
        reason, detail = self.verdict.reason, self.verdict.detail.strip()
        return f"{reason} {detail[-_SHOWN_CHARS:]}".strip() if self.status is not _EXPECTED else reason

    @property
    def is_above(self) -> bool:
        """Whether the eager reference is faster than the floor says is possible."""
        found = self.verdict
        if found is None or found.roofline is None or found.reference is None:
            return False
        return found.roofline.t_min_us > found.reference.median_us

    @property
    def complaint(self) -> str:
        """What is out of order, as a line; empty where nothing is."""
        if self.status is Status.CORRECT:
            return "REWARDED"
        if self.status is Status.INFRASTRUCTURE_ERROR:
            return f"INFRASTRUCTURE: {self.note}"
        if self.status is not _EXPECTED:
            return f"unexpected {self.status.value}: {self.note}"
        if self.is_above:
            return "the floor lies above the eager time"
        return f"slow: {self.seconds:.0f} s" if self.seconds > _SLOW_S else ""

    def row(self) -> dict[str, Any]:
        """The line of the report."""
        verdict, flaw = self.verdict, flaw_of(self.problem)
        return {
            "id": self.task.id,
            "position": 1000 * self.problem.level + self.problem.number,
            "finished": verdict is not None,
            "level": self.problem.level,
            "number": self.problem.number,
            "name": self.problem.name,
            "unsound": flaw.flaw.value if flaw else "",
            "status": self.status.value,
            "cheat": verdict.cheat if verdict else "",
            "note": self.note,
            "as_expected": self.status is _EXPECTED,
            "floor_above_eager": self.is_above,
            "seconds": None if math.isnan(self.seconds) else self.seconds,
            **({} if verdict is None else _measured(verdict)),
        }


def _measured(verdict: Verdict) -> dict[str, Any]:
    roofline, eager, stages = verdict.roofline, verdict.reference, verdict.stages
    found: dict[str, Any] = {
        "isolation": verdict.isolation,
        "queue_s": stages.queue_s,
        "load_s": stages.load_s,
        "correctness_s": stages.correctness_s,
    }
    if roofline is not None and eager is not None:
        found.update(
            bytes=roofline.work.bytes,
            flops=roofline.work.total_flops,
            bound="bytes" if roofline.memory_bound else "FLOPs",
            t_min_us=roofline.t_min_us,
            eager_us=eager.median_us,
            eager_samples=len(eager.samples_us),
            t_min_by_eager=roofline.t_min_us / eager.median_us,
        )
    return found


def lines_of(kernelbench: Path, levels: Sequence[int], numbers: Sequence[int]) -> list[Line]:
    """The problems of some levels, known flaws or not.

    Args:
        kernelbench: A checkout of KernelBench, or a data file of it.
        levels: Which levels.
        numbers: Which problems of each; all where empty.
    """
    tasks = {
        task.id: task
        for level in levels
        for task in load(f"kernelbench/level{level}+unsound", kernelbench=kernelbench)
    }
    return [
        Line(problem, tasks[problem.task_id])
        for problem in read_problems(kernelbench)
        if problem.task_id in tasks and (not numbers or problem.number in numbers)
    ]


def wrapped(problem: Problem) -> str:
    """A problem's reference as a submission."""
    return f"{problem.source.rstrip()}\n\n\nclass ModelNew(Model):\n    pass\n"


class Run:
    """Evaluates lines on one device, several at once.

    Args:
        device: Device as the evaluator takes it.
        timeout_s: Seconds that one submission may spend.
        jobs: Evaluations in flight.
    """

    def __init__(self, device: str, timeout_s: float, jobs: int) -> None:
        self._config = EvaluatorConfig(device=device, timeout_s=timeout_s)
        self._jobs = jobs

    def facts(self) -> DeviceFacts:
        """The device."""
        evaluator = Evaluator(self._config)
        try:
            return evaluator.brief(load("matmul")[0]).device
        finally:
            evaluator.close()

    def answers(self, lines: Sequence[Line], deadline: float) -> Iterator[Line]:
        """Work through the lines; gives each back when it is filled in. None is begun past the deadline.

        Args:
            lines: Which.
            deadline: By ``time.monotonic()``.
        """
        for start in range(0, len(lines), _PROBLEMS_A_JUDGE):
            if time.monotonic() > deadline:
                return
            evaluator = Evaluator(self._config)
            try:
                yield from self._batch(evaluator, lines[start : start + _PROBLEMS_A_JUDGE], deadline)
            finally:
                evaluator.close()

    def _batch(self, evaluator: Evaluator, lines: Sequence[Line], deadline: float) -> Iterator[Line]:
        waiting: queue.SimpleQueue[Line] = queue.SimpleQueue()
        done: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
        begun: list[Line] = []
        for line in lines:
            waiting.put(line)

        def work() -> None:
            try:
                while time.monotonic() <= deadline:
                    mine = waiting.get_nowait()
                    begun.append(mine)
                    _evaluate(evaluator, mine)
                    done.put(mine)
            except queue.Empty:
                return
            finally:
                done.put(None)

        for _ in range(self._jobs):
            threading.Thread(target=work, daemon=True).start()
        at_work = self._jobs
        while at_work:
            patience_s = max(deadline - time.monotonic(), 0.0) + _GRACE_S
            try:
                answer = done.get(timeout=min(patience_s, threading.TIMEOUT_MAX))
            except queue.Empty:
                for late in (line for line in begun if not line.is_begun):
                    late.failure = "The judge gave no answer in time."
                    yield late
                return
            if answer is None:
                at_work -= 1
            else:
                yield answer


def _evaluate(evaluator: Evaluator, line: Line) -> None:
    started = time.monotonic()
    try:
        verdict = evaluator.evaluate(Submission(line.task, wrapped(line.problem)))
    except Exception as error:
        # One problem must not cost the others their row; it is reported as the failure that it is.
        line.failure = f"{type(error).__name__}: {error}"
        return
    line.seconds = time.monotonic() - started
    line.verdict = verdict


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """One row for each problem, as ``docs/kernelbench.md`` shows it."""
    headline = ("problem", "verdict", "flaw", "t_min (us):", "eager (us):", "t_min / eager:", "time (s):")
    return as_table(headline, (_cells(row) for row in rows))


def _cells(row: dict[str, Any]) -> Sequence[str]:
    return (
        f"{row['level']}/{row['name']}",
        row["status"] if not row["cheat"] else f"{row['status']}: {row['cheat']}",
        row["unsound"] or "-",
        number(row.get("t_min_us"), 1),
        number(row.get("eager_us"), 1),
        number(row.get("t_min_by_eager"), 3),
        number(row["seconds"], 1),
    )


def summary(rows: list[dict[str, Any]], not_begun: Sequence[str]) -> str:
    """What came out, in a line for each level."""
    lines = []
    for level in sorted({row["level"] for row in rows}):
        of_level = [row for row in rows if row["level"] == level]
        statuses = Counter(row["status"] for row in of_level).most_common()
        above = [row["name"] for row in of_level if row["floor_above_eager"]]
        lines.append(
            f"level {level}: {len(of_level)} problems, {', '.join(f'{count} {status}' for status, count in statuses)}; "
            f"floor above eager: {', '.join(above) or 'none'}"
        )
    if not_begun:
        lines.append(f"{len(not_begun)} not begun, from {not_begun[0]} to {not_begun[-1]}.")
    return "\n".join(lines)


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
    parser.add_argument("--kernelbench", type=Path, help="a checkout of KernelBench, or a data file of it")
    parser.add_argument("--level", type=int, action="append", help="1 and 2 where nothing is said")
    parser.add_argument("--number", type=int, nargs="+", default=[], help="problems of each level")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one submission")
    parser.add_argument("--jobs", type=int, default=3, help="evaluations in flight")
    parser.add_argument("--markdown", action="store_true", help="print the whole table as well")
    options = parser.parse_args(arguments)
    if options.merge:
        path, report = write_merged(options.merge, options.out)
        rows, not_begun = report["rows"], report["not_begun"]
    elif options.kernelbench is None:
        parser.error("say where KernelBench is: --kernelbench CHECKOUT")
    else:
        path, rows, not_begun = _run(options)
    if options.markdown:
        print(as_markdown(rows))
    print(summary(rows, not_begun))
    print(path)
    bad = (Status.CORRECT.value, Status.INFRASTRUCTURE_ERROR.value)
    sys.exit(1 if not rows or any(row["status"] in bad for row in rows) else 0)


def _run(options: argparse.Namespace) -> tuple[Path, list[dict[str, Any]], list[str]]:
    started = time.monotonic()
    part: Part = options.part
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        every = lines_of(options.kernelbench, options.level or [1, 2], options.number)
    lines = still_to_do(every, lambda line: line.task.id, options)
    head: dict[str, Any] = {
        "table": TABLE,
        "part": f"{part.index}/{part.count}",
        "warnings": [str(w.message) for w in caught],
    }
    run = Run(options.device, options.timeout, options.jobs)
    results = Results(f"{TABLE}{part.suffix}", run.facts(), options.out, head)

    def write() -> list[dict[str, Any]]:
        head["not_begun"] = [line.task.id for line in lines if not line.is_begun]
        head["seconds"] = time.monotonic() - started
        rows = [line.row() for line in lines if line.is_begun]
        results.write(rows)
        return rows

    with tqdm(total=len(lines), desc="problems") as bar:
        for line in run.answers(lines, started + options.limit):
            bar.update()
            if line.complaint:
                tqdm.write(f"{line.problem.place} {line.problem.name}: {line.complaint}")
            write()
    return results.path, write(), list(head["not_begun"])


if __name__ == "__main__":
    main()
