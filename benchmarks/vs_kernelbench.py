"""The same kernels through KernelBench's evaluator and through this one, by turns in one run: seconds each.

    python -m benchmarks.vs_kernelbench --kernelbench CHECKOUT [--device auto] [--rounds 3]

CHECKOUT is a checkout of https://github.com/ScalingIntelligence/KernelBench; nothing of it is part of this project. Its
side is a fresh process for each evaluation, from start to end (``benchmarks.kernelbench_process`` says what runs in it,
with which settings); this side is a warm ``env.step``, as in ``benchmarks.latency``. In each round both get the same
text, with kernel names that no compiler has seen before, and take turns at who is first. The problems are KernelBench's
own, at their official sizes, and this project's tasks of the same functions and sizes.

Without a GPU, KernelBench's evaluator is imported and says that it needs one; this side runs at the small sizes.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tqdm import tqdm

from benchmarks.child import ChildFailed, run_child
from benchmarks.clocks import visible_gpu
from benchmarks.journal import Deadline, Journal
from benchmarks.kernels import Kernel, Language
from benchmarks.report import RESULTS
from benchmarks.timed_env import NotCorrect, StepTimes, TimedEnv
from gym_kernel.evaluator.device_choice import resolve_device

__all__ = ["Comparison", "main"]

_EVALUATOR_FILE = Path("src", "kernelbench", "eval.py")
_PROBLEMS = {"mingpt_gelu": "88_MinGPTNewGelu.py", "relu": "19_ReLU.py"}
# What a process may take beyond its evaluation's own limit, before it is killed.
_GRACE_S = 10.0


@dataclass(frozen=True)
class TheirRun:
    """One process of KernelBench's.

    Attributes:
        seconds: From its start to its end.
        answer: What it reported.
        problem: Why it gave no time; empty where it did.
        needs: What the machine lacks for it; empty where nothing.
    """

    seconds: float
    answer: dict[str, Any]
    problem: str = ""
    needs: str = ""


@dataclass
class Comparison:
    """All rounds of one kernel.

    Attributes:
        kernel: The kernel.
        ours: This project's warm steps.
        theirs: KernelBench's processes.
        first_reset_s: Seconds of this side's first reset: the host's start, and the reference.
        first_step_s: Seconds of this side's first step.
    """

    kernel: Kernel
    ours: list[StepTimes] = field(default_factory=list)
    theirs: list[TheirRun] = field(default_factory=list)
    first_reset_s: float = math.nan
    first_step_s: float = math.nan

    def row(self) -> dict[str, Any]:
        """Medians and their ratio; ``None`` where KernelBench gave no time."""
        ours_s = [times.step_s for times in self.ours]
        timed = [run for run in self.theirs if not run.problem and not run.needs]
        theirs_s = [run.seconds for run in timed]
        evals_s = [run.answer["eval_s"] for run in timed]
        ours_median_s = median(ours_s) if ours_s else None
        theirs_median_s = median(theirs_s) if theirs_s else None
        ratio = theirs_median_s / ours_median_s if theirs_median_s and ours_median_s else None
        return {
            "kernel": self.kernel.label,
            "ours_median_s": ours_median_s,
            "kernelbench_median_s": theirs_median_s,
            "kernelbench_eval_median_s": median(evals_s) if evals_s else None,
            "ratio": ratio,
            "ours_runtime_us": median(times.runtime_us for times in self.ours) if self.ours else None,
            "kernelbench_runtime_us": median(1000 * run.answer["runtime_ms"] for run in timed)
            if timed
            else None,
            "ours_first_reset_s": self.first_reset_s,
            "ours_first_step_s": self.first_step_s,
            "ours_samples_s": [asdict(times) for times in self.ours],
            "kernelbench_runs": [asdict(run) for run in self.theirs],
        }


@dataclass(frozen=True)
class Checkout:
    """A checkout of KernelBench.

    Attributes:
        root: Its root folder.
    """

    root: Path

    def check(self) -> None:
        """Find out whether it is one.

        Raises:
            SystemExit: It is not; the message says how to get one.
        """
        wanted = [_EVALUATOR_FILE, *(Path("KernelBench", "level1", name) for name in _PROBLEMS.values())]
        missing = [str(path) for path in wanted if not (self.root / path).is_file()]
        if missing:
            raise SystemExit(
                f"{self.root} is no checkout of KernelBench: {missing[0]} is not in it. "
                "git clone https://github.com/ScalingIntelligence/KernelBench, and pass its folder."
            )

    @property
    def evaluator_sha256(self) -> str:
        """Hash of the evaluator's file, to tell which one ran."""
        return hashlib.sha256((self.root / _EVALUATOR_FILE).read_bytes()).hexdigest()

    def evaluate(self, kernel: Kernel, source: str, device_id: str, limit_s: float) -> TheirRun:
        """Evaluate one text in a fresh process of at most ``limit_s`` seconds."""
        problem = self.root / "KernelBench" / "level1" / _PROBLEMS[kernel.task]
        backend = "triton" if kernel.language is Language.TRITON else "cuda"
        visible = {} if device_id == "cpu" else {"CUDA_VISIBLE_DEVICES": visible_gpu(device_id)}
        with tempfile.TemporaryDirectory(prefix="kernelbench-") as folder:
            module = Path(folder) / "kernel.py"
            module.write_text(source, encoding="utf-8")
            arguments = [str(self.root), str(problem), str(module), backend, str(limit_s)]
            try:
                done = run_child("benchmarks.kernelbench_process", arguments, limit_s + _GRACE_S, visible)
            except ChildFailed as error:
                return TheirRun(math.nan, {}, problem=str(error))
        return TheirRun(done.seconds, done.answer, done.answer["problem"], done.answer["needs"])


class Contest:
    """Plays rounds of one kernel, with the environment open in between.

    Args:
        comparison: Where results go.
        checkout: KernelBench.
        device_id: ``"cpu"`` or ``"cuda:0"``.
        limit_s: Seconds that one process of KernelBench's may take.
    """

    def __init__(self, comparison: Comparison, checkout: Checkout, device_id: str, limit_s: float) -> None:
        self._comparison = comparison
        self._checkout = checkout
        self._device_id = device_id
        self._limit_s = limit_s

    def rounds(self, env: TimedEnv, count: int, deadline: Deadline) -> Iterator[int]:
        """Play up to ``count`` rounds; none is begun that, at the length of the longest, would pass the deadline.

        Yields:
            The number of each round that was played.

        Raises:
            NotCorrect: This side does not find the kernel correct.
        """
        kernel, longest_s = self._comparison.kernel, 0.0
        self._comparison.first_reset_s = env.first_reset_s
        self._comparison.first_step_s = env.step(kernel.variant(0)).step_s
        for number in range(1, count + 1):
            if deadline.left_s <= longest_s:
                return
            started = time.monotonic()
            source = kernel.variant(number)
            if number % 2:
                self._ours(env, source)
                self._theirs(source, deadline)
            else:
                self._theirs(source, deadline)
                self._ours(env, source)
            longest_s = max(longest_s, time.monotonic() - started)
            yield number

    def _ours(self, env: TimedEnv, source: str) -> None:
        self._comparison.ours.append(env.step(source))

    def _theirs(self, source: str, deadline: Deadline) -> None:
        runs = self._comparison.theirs
        if runs and runs[-1].needs:
            # What the machine lacked a moment ago it still lacks.
            return
        limit_s = min(self._limit_s, max(deadline.left_s, 1.0))
        runs.append(self._checkout.evaluate(self._comparison.kernel, source, self._device_id, limit_s))


def contestants(tasks: list[str] | None, device_id: str) -> list[Kernel]:
    """The kernels, the quick ones first.

    Args:
        tasks: Tasks whose Triton kernels are wanted; ``None`` for all, and on a GPU MinGPT GELU in CUDA as well.
        device_id: ``"cpu"`` or ``"cuda:0"``.
    """
    if tasks is not None:
        return [Kernel(task) for task in tasks]
    inline = [] if device_id == "cpu" else [Kernel("mingpt_gelu", Language.CUDA)]
    return [Kernel("mingpt_gelu"), *inline, Kernel("relu")]


def _print(row: dict[str, Any]) -> None:
    theirs_s, ratio = row["kernelbench_median_s"], row["ratio"]
    ours = f"{row['ours_median_s']:.2f} s" if row["ours_median_s"] else "no time"
    compared = f"KernelBench {theirs_s:.1f} s, {ratio:.1f} times as long" if ratio else "KernelBench: no time"
    print(f"{row['kernel']:20} {ours} a warm step, {compared}")
    for said in sorted({run["needs"] or run["problem"] for run in row["kernelbench_runs"]} - {""}):
        print(f"  {said}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernelbench", type=Path, required=True, help="a checkout of KernelBench")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", nargs="+", choices=sorted(_PROBLEMS), help="only Triton kernels of these")
    parser.add_argument(
        "--process-limit", type=float, default=300.0, help="seconds for a process of KernelBench's"
    )
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds for everything")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be 1 or more.")
    checkout = Checkout(options.kernelbench.resolve())
    checkout.check()
    device_id = resolve_device(options.device)
    settings = {"rounds": options.rounds, "kernelbench_eval_sha256": checkout.evaluator_sha256}
    journal = Journal("vs-kernelbench", device_id, options.out, settings)
    deadline = Deadline(options.limit)
    comparisons: list[Comparison] = []
    facts, problems = None, []
    for kernel in contestants(options.tasks, device_id):
        if deadline.has_passed:
            print(f"{kernel.label}: left out, the limit of {options.limit:g} s has passed")
            continue
        comparison = Comparison(kernel)
        comparisons.append(comparison)
        contest = Contest(comparison, checkout, device_id, options.process_limit)
        with TimedEnv(kernel.task, options.device) as env:
            facts = env.facts
            try:
                for _ in tqdm(contest.rounds(env, options.rounds, deadline), kernel.label, options.rounds):
                    journal.write(facts, {"rows": [each.row() for each in comparisons]})
            except NotCorrect as error:
                problems.append(str(error))
        _print(comparison.row())
    if facts is None:
        raise SystemExit(f"Nothing was measured within {options.limit:g} s; pass a longer --limit.")
    journal.finish(facts, {"rows": [each.row() for each in comparisons]})
    problems += [run.problem for comparison in comparisons for run in comparison.theirs if run.problem]
    for problem in problems[:5]:
        print(f"PROBLEM {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
