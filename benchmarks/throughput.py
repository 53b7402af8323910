"""Evaluations a minute with 1, 4, 16 and 64 submissions in flight on one device, and what bounds them.

    python -m benchmarks.throughput [--device auto] [--tasks mingpt_gelu relu] [--in-flight 1 4 16 64] [--seconds 60]

Threads share one evaluator; each hands in its next submission as soon as it has the verdict on the last, every one with
other kernel names, so that each is compiled. At the end of the time those in flight are finished and counted too, so a
level lasts a little longer than asked. Fails if a verdict is anything but ``correct``.

Occupancy of the lane is the sum of the submissions' correctness and timing stages over the wall-clock time. The lane
holds one submission at a time, so it is at most 1; within it the judge also makes inputs and compares outputs, so it
is no measure of how busy the GPU's multiprocessors are. Other hosts that use the device take turns on the lane, so
measure on a machine of your own.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tqdm import tqdm

from benchmarks.journal import Deadline, Journal
from benchmarks.kernels import Kernel
from benchmarks.report import RESULTS
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.device_choice import resolve_device
from gym_kernel.evaluator.submission import Submission
from gym_kernel.evaluator.verdict import Verdict
from gym_kernel.tasks import Task, load

__all__ = ["Level", "bound_by", "main", "run_level"]

# A submission waits for all others; past this after the end of the time it hangs.
_HANG_S = 600.0
_FULL = 0.85
_WAITING = 0.25


@dataclass(frozen=True)
class Evaluated:
    """One submission of a level.

    Attributes:
        verdict: What became of it.
        latency_s: Seconds from handing it in to the verdict, by the caller's clock.
    """

    verdict: Verdict
    latency_s: float


@dataclass(frozen=True)
class Level:
    """All submissions of one task at one number in flight.

    Attributes:
        in_flight: Threads that handed them in.
        wall_s: Seconds from the first hand-in to the last verdict.
        evaluated: One entry for each.
    """

    in_flight: int
    wall_s: float
    evaluated: tuple[Evaluated, ...]

    @property
    def per_minute(self) -> float:
        """Evaluations a minute."""
        return 60 * len(self.evaluated) / self.wall_s

    @property
    def lane_occupancy(self) -> float:
        """Share of the wall-clock time in which a submission was on the device; see the module."""
        return self.mean_in("correctness_s") + self.mean_in("timing_s")

    def mean_in(self, stage: str) -> float:
        """Submissions that were in a stage at once, on average over the time (Little's law)."""
        return sum(getattr(each.verdict.stages, stage) for each in self.evaluated) / self.wall_s

    def latency_s(self) -> tuple[float, float]:
        """Median and 90th percentile of the latency, in seconds."""
        latencies = [each.latency_s for each in self.evaluated]
        if len(latencies) < 2:
            return latencies[0], latencies[0]
        return median(latencies), quantiles(latencies, n=10, method="inclusive")[-1]


def bound_by(level: Level, compile_slots: int) -> str:
    """What keeps a level from more evaluations a minute.

    ``"lane"`` where the device is always occupied, ``"compile slots"`` where as many submissions compile as may,
    ``"worker supply"`` where submissions wait although neither is full (or the hand-over of the lane from one to
    the next, which the stages do not tell from it), and ``"submissions in flight"`` where they hardly wait: more
    of them would give more.

    Args:
        level: What was measured.
        compile_slots: Submissions that the judge lets compile at once.
    """
    if level.lane_occupancy >= _FULL:
        return "lane"
    if level.mean_in("load_s") >= _FULL * compile_slots:
        return "compile slots"
    if level.mean_in("queue_s") >= _WAITING * level.in_flight:
        return "worker supply"
    return "submissions in flight"


def run_level(
    evaluator: Evaluator,
    task: Task,
    kernel: Kernel,
    in_flight: int,
    seconds: float,
    numbers: itertools.count[int],
) -> Level:
    """Keep ``in_flight`` submissions of one task in flight for a time.

    Args:
        evaluator: Where they are handed in.
        task: The task.
        kernel: Its kernel.
        in_flight: Threads that hand in.
        seconds: How long none waits for a next submission; each thread hands in one at least.
        numbers: Numbers of the variants.

    Raises:
        TimeoutError: A submission hangs.
    """
    done: list[Evaluated] = []
    mutex = threading.Lock()
    started = time.monotonic()
    bar = tqdm(desc=f"{kernel.label}, {in_flight} in flight")

    def hand_in() -> None:
        while True:
            with mutex:
                source = kernel.variant(next(numbers))
            asked = time.monotonic()
            verdict = evaluator.evaluate(Submission(task, source))
            with mutex:
                done.append(Evaluated(verdict, time.monotonic() - asked))
                bar.update()
            if time.monotonic() - started >= seconds:
                return

    # Daemons, so that one that hangs does not keep the process from saying so.
    threads = [threading.Thread(target=hand_in, daemon=True) for _ in range(in_flight)]
    for thread in threads:
        thread.start()
    deadline = Deadline(seconds + _HANG_S)
    for thread in threads:
        thread.join(deadline.left_s)
    wall_s = time.monotonic() - started
    bar.close()
    hanging = sum(thread.is_alive() for thread in threads)
    if hanging:
        raise TimeoutError(
            f"{hanging} of {in_flight} submissions had no verdict {_HANG_S:.0f} s after the end."
        )
    return Level(in_flight, wall_s, tuple(done))


def row(level: Level, task: str, compile_slots: int) -> dict[str, Any]:
    """The results of one level."""
    latency_s, p90_s = level.latency_s()
    staged_s = {
        name: sum(getattr(each.verdict.stages, name) for each in level.evaluated)
        for name in ("queue_s", "load_s", "correctness_s", "timing_s")
    }
    total_s = sum(each.latency_s for each in level.evaluated)
    return {
        "task": task,
        "in_flight": level.in_flight,
        "evaluations": len(level.evaluated),
        "wall_s": level.wall_s,
        "per_minute": level.per_minute,
        "latency_median_s": latency_s,
        "latency_p90_s": p90_s,
        "lane_occupancy": level.lane_occupancy,
        "mean_queued": level.mean_in("queue_s"),
        "mean_loading": level.mean_in("load_s"),
        "compile_slots": compile_slots,
        "stage_shares": {name: seconds / total_s for name, seconds in staged_s.items()},
        "bound_by": bound_by(level, compile_slots),
        "statuses": dict(Counter(each.verdict.status.value for each in level.evaluated)),
        "latencies_s": [each.latency_s for each in level.evaluated],
    }


def warm_up(evaluator: Evaluator, task: Task, kernel: Kernel, numbers: itertools.count[int]) -> None:
    """Have the judge make what it keeps: reference, clocks, memory.

    Raises:
        SystemExit: The kernel is not correct.
    """
    verdict = evaluator.evaluate(Submission(task, kernel.variant(next(numbers))))
    if not verdict.correct:
        raise SystemExit(
            f"{kernel.label} was judged {verdict.status.value}: {verdict.reason} {verdict.detail}"
        )


def _print(result: dict[str, Any]) -> None:
    print(
        f"{result['task']:14} {result['in_flight']:3} in flight: {result['per_minute']:7.1f} a minute, "
        f"latency {result['latency_median_s']:.2f} s (p90 {result['latency_p90_s']:.2f} s), "
        f"lane occupied {result['lane_occupancy']:.0%}, {result['mean_loading']:.1f} of "
        f"{result['compile_slots']} compiling, {result['mean_queued']:.1f} queued: bound by {result['bound_by']}"
    )


def _refused(level: Level) -> list[str]:
    """Reasons of verdicts that should have been ``correct``."""
    verdicts = [each.verdict for each in level.evaluated if not each.verdict.correct]
    return [f"{v.status.value}: {v.reason} {v.detail}"[:400] for v in verdicts]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tasks", nargs="+", help="tasks whose Triton examples are handed in")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each task and number in flight")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no level is begun")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if min(options.in_flight) < 1:
        parser.error("--in-flight takes numbers of 1 or more.")
    device_id = resolve_device(options.device)
    tasks = options.tasks or (["relu"] if device_id == "cpu" else ["mingpt_gelu", "relu"])
    compile_slots = max(2, len(os.sched_getaffinity(0)))
    deadline, numbers = Deadline(options.limit), itertools.count()
    rows: list[dict[str, Any]] = []
    refused: list[str] = []
    evaluator = Evaluator(EvaluatorConfig(device=options.device))
    journal = Journal("throughput", device_id, options.out, {"seconds": options.seconds})
    try:
        for kernel in map(Kernel, tasks):
            task = load(kernel.task)[0]
            facts = evaluator.brief(task).device
            warm_up(evaluator, task, kernel, numbers)
            for in_flight in options.in_flight:
                if deadline.left_s < options.seconds:
                    print(f"{kernel.label}, {in_flight} in flight: left out, --limit leaves no time for it")
                    continue
                level = run_level(evaluator, task, kernel, in_flight, options.seconds, numbers)
                rows.append(row(level, kernel.label, compile_slots))
                refused += _refused(level)
                _print(rows[-1])
                journal.write(facts, {"rows": rows, "refused": refused})
    finally:
        evaluator.close()
    if not rows:
        raise SystemExit(f"--limit {options.limit:g} leaves no time for a level of {options.seconds:g} s.")
    journal.finish(facts, {"rows": rows, "refused": refused})
    for reason in refused[:5]:
        print(f"NOT CORRECT {reason}")
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
