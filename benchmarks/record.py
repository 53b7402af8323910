"""Measure again what the documentation cites: every benchmark on one device, in turn, within a time limit.

    python -m benchmarks.record --device cuda:0 --minutes 60 --kernelbench CHECKOUT
    python -m benchmarks.record --device cuda:0 --minutes 9 --only honest exploits --out parts

Each step is a process of its own with a share of the time that is left. One that overstays is killed; the reports are
written after each result, so that what it had measured stays. What a step prints goes to ``<out>/logs``. The exit
status is 1 where a step failed, was killed or was not begun.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tqdm import tqdm

from benchmarks.journal import Deadline
from benchmarks.report import RESULTS

__all__ = ["STEPS", "Ending", "Outcome", "Step", "carry_out"]

_ROOT = Path(__file__).parents[1]
# What a benchmark has begun when its own limit passes is given so long to end; then it is killed.
_GRACE_S = 30.0
_TAIL_CHARS = 600


@dataclass(frozen=True)
class Step:
    """A benchmark and its arguments.

    Attributes:
        name: What it is called here.
        module: What ``python -m`` runs.
        arguments: Beside ``--device``, ``--limit`` and ``--out``.
        wants_s: Seconds that are enough for all of it on an H200.
        wants_kernelbench: Whether it takes a checkout of KernelBench.
    """

    name: str
    module: str
    arguments: tuple[str, ...]
    wants_s: float
    wants_kernelbench: bool = False


# A wrong verdict outweighs a slow one: the verdicts come first.
STEPS = (
    Step("honest", "corpora", ("tests/honest", "--repeats", "5", "--jobs", "8", "--skip-slow"), 400),
    Step("exploits", "corpora", ("tests/exploits", "--repeats", "5", "--jobs", "8", "--skip-slow"), 500),
    Step("kernelbench", "kernelbench_table", ("--jobs", "4", "--timeout", "40"), 600, True),
    Step("core", "core_table", (), 600),
    Step("throughput", "throughput", ("--seconds", "25"), 280),
    Step("timing_accuracy", "timing_accuracy", (), 450),
    Step("latency", "latency", ("--steps", "8", "--inline", "--inline-steps", "2"), 120),
    Step("vs_kernelbench", "vs_kernelbench", (), 500, True),
    Step("pilot", "pilot_table", ("--inline",), 120),
    Step("context_noise", "context_noise", (), 120),
    Step("soak", "soak", ("--submissions", "500", "--timeout", "4"), 600),
)
_WITHOUT_LIMIT = frozenset({"pilot_table"})


class Ending(str, Enum):
    """How a step ended."""

    DONE = "done"
    FAILED = "failed"
    KILLED = "killed"
    NOT_BEGUN = "not begun"


@dataclass(frozen=True)
class Outcome:
    """A step, how it ended, and the end of what it printed."""

    step: Step
    ending: Ending
    said: str = ""


def carry_out(step: Step, arguments: Sequence[str], log: Path, limit_s: float) -> Outcome:
    """Run one step in a process group of its own, which is killed at the end; hosts of evaluators end with it.

    Args:
        step: Which.
        arguments: What goes behind its own.
        log: Where its output goes.
        limit_s: Seconds after which it is killed.
    """
    command = [sys.executable, "-m", f"benchmarks.{step.module}", *step.arguments, *arguments]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=_ROOT,
            start_new_session=True,
        )
        try:
            ending = Ending.FAILED if process.wait(limit_s) else Ending.DONE
        except subprocess.TimeoutExpired:
            ending = Ending.KILLED
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Outcome(step, ending, log.read_text(encoding="utf-8", errors="replace")[-_TAIL_CHARS:].strip())


def _chosen(options: argparse.Namespace) -> list[Step]:
    return [
        step
        for step in STEPS
        if (not options.only or step.name in options.only)
        and (options.kernelbench is not None or not step.wants_kernelbench)
    ]


def _arguments(step: Step, options: argparse.Namespace, limit_s: float) -> list[str]:
    given = ["--device", options.device, "--out", str(options.out.resolve())]
    if step.module not in _WITHOUT_LIMIT:
        given += ["--limit", f"{limit_s:.0f}"]
    if step.wants_kernelbench:
        given += ["--kernelbench", str(options.kernelbench.resolve())]
    return given


def main() -> None:
    """Run the steps and say how each ended."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--minutes", type=float, default=75.0, help="for everything")
    parser.add_argument(
        "--only", nargs="+", choices=[step.name for step in STEPS], default=[], metavar="STEP"
    )
    parser.add_argument(
        "--kernelbench", type=Path, help="a checkout; steps that need one are left out without it"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    steps = _chosen(options)
    if not steps:
        parser.error("these steps need a checkout of KernelBench: name it with --kernelbench")
    deadline = Deadline(60 * options.minutes)
    outcomes = []
    for step in tqdm(steps, desc="steps", disable=None):
        limit_s = min(step.wants_s, deadline.left_s - _GRACE_S)
        if limit_s <= 0:
            outcomes.append(Outcome(step, Ending.NOT_BEGUN))
            continue
        log = options.out / "logs" / f"{step.name}.log"
        outcomes.append(carry_out(step, _arguments(step, options, limit_s), log, limit_s + _GRACE_S))
        tqdm.write(f"{step.name}: {outcomes[-1].ending.value}")
    for outcome in outcomes:
        print(f"{outcome.step.name:<16} {outcome.ending.value}")
        if outcome.ending in (Ending.FAILED, Ending.KILLED):
            print(outcome.said, file=sys.stderr)
    sys.exit(0 if all(outcome.ending is Ending.DONE for outcome in outcomes) else 1)


if __name__ == "__main__":
    main()
