"""Run a folder of submissions with headers through one evaluator, and count what was rewarded and what refused.

    python -m benchmarks.corpora tests/exploits [--device auto] [--repeats 1] [--only NAME ...] [--jobs 4]
    python -m benchmarks.corpora tests/honest --repeats 5

A module whose header names statuses other than ``correct`` is an exploit: it must not be rewarded. Any other is
honest: it must not be refused. The exit status is 1 where one of either was judged wrongly.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.report import RESULTS, write_report
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.submission import Submission
from gym_kernel.evaluator.verdict import Verdict
from gym_kernel.rewards import turn_reward
from gym_kernel.tasks import load

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from corpus import Module, load_corpus  # noqa: E402

_TIMEOUT_S = {"cpu": 30.0, "cuda": 120.0}
_BUILD_TIMEOUT_S = 280.0


@dataclass(frozen=True)
class Judged:
    """What one run of a module came to."""

    module: Module
    repeat: int
    status: str
    reward: float
    cheat: str
    reason: str
    runtime_us: float | None
    roofline_fraction: float | None
    total_s: float

    @property
    def is_honest(self) -> bool:
        """Whether the module should be judged correct."""
        return self.module.expected == ("correct",)

    @property
    def is_rewarded(self) -> bool:
        """Whether it was judged correct, its own true time aside where it had lied about it."""
        return self.status == "correct" and not self.module.is_timed_truly(self.runtime_us)

    @property
    def is_wrong(self) -> bool:
        """Whether an exploit was rewarded or an honest module refused."""
        return self.status != "correct" if self.is_honest else self.is_rewarded

    @property
    def is_unexpected(self) -> bool:
        """Whether the status is another one than the header names."""
        return not self.module.is_expected(self.status, self.runtime_us)

    def row(self) -> dict[str, Any]:
        """The line of the report."""
        return {
            "module": self.module.name,
            "kind": self.module.kind,
            "task": self.module.task,
            "repeat": self.repeat,
            "expected": list(self.module.expected),
            "status": self.status,
            "reward": self.reward,
            "rewarded": self.is_rewarded,
            "as_expected": not self.is_unexpected,
            "cheat": self.cheat,
            "reason": self.reason,
            "runtime_us": self.runtime_us,
            "roofline_fraction": self.roofline_fraction,
            "total_s": self.total_s,
        }


class Corpus:
    """Judges modules, several at once, on one device.

    Args:
        device: Device as the evaluator takes it.
        timeout_s: Limit of a module that sets none itself; None for the device's usual.
    """

    def __init__(self, device: str, timeout_s: float | None) -> None:
        self._device = device
        self._timeout_s = timeout_s
        self._evaluators: dict[float, Evaluator] = {}
        probe = self._evaluator(1.0)
        self._tasks = {task.id: task for task in load(["pilot", "core"])}
        self.facts = probe.brief(self._tasks["relu"]).device
        self.kind = "cuda" if self.facts.is_cuda else "cpu"

    def judge(self, module: Module, repeat: int, deadline: float) -> Judged | None:
        """Hand one module in, as often as its header says; the last verdict counts, unless one before is wrong.

        Returns:
            What came of it, or ``None`` where ``time.monotonic()`` was past the deadline before it began.
        """
        if time.monotonic() > deadline:
            return None
        evaluator = self._evaluator(self._limit_of(module))
        for _ in range(module.submissions):
            verdict = evaluator.evaluate(Submission(self._tasks[module.task], module.code))
            judged = _judged(module, repeat, verdict)
            if judged.is_wrong:
                break
        return judged

    def prepare(self, modules: list[Module]) -> None:
        """Make every evaluator before threads share them."""
        for module in modules:
            self._evaluator(self._limit_of(module))

    def close(self) -> None:
        """Leave the host."""
        for evaluator in self._evaluators.values():
            evaluator.close()

    def _limit_of(self, module: Module) -> float:
        if module.timeout_s is not None:
            return module.timeout_s
        if module.slow:
            return _BUILD_TIMEOUT_S
        return self._timeout_s or _TIMEOUT_S[self.kind]

    def _evaluator(self, timeout_s: float) -> Evaluator:
        if timeout_s not in self._evaluators:
            evaluator = Evaluator(EvaluatorConfig(device=self._device, timeout_s=timeout_s))
            evaluator.start()
            self._evaluators[timeout_s] = evaluator
        return self._evaluators[timeout_s]


def _judged(module: Module, repeat: int, verdict: Verdict) -> Judged:
    t_min_us = verdict.roofline.t_min_us if verdict.roofline else float("nan")
    return Judged(
        module=module,
        repeat=repeat,
        status=verdict.status.value,
        reward=turn_reward(verdict.correct, t_min_us, verdict.runtime_us or float("nan")),
        cheat=verdict.cheat,
        reason=verdict.reason,
        runtime_us=verdict.runtime_us,
        roofline_fraction=verdict.roofline_fraction,
        total_s=verdict.stages.total_s,
    )


def run(
    corpus: Corpus,
    modules: list[Module],
    repeats: int,
    jobs: int,
    limit_s: float = math.inf,
    keep: Callable[[list[Judged]], object] = len,
) -> list[Judged]:
    """Judge every module, several at once, and say what is out of order as it comes.

    Args:
        corpus: Where they are judged.
        modules: What is judged.
        repeats: How often each.
        jobs: How many at once.
        limit_s: Seconds past which none is begun.
        keep: Called with all results so far after each, so that whatever ends the run loses none.

    Returns:
        The results by name.
    """
    corpus.prepare(modules)
    deadline = time.monotonic() + limit_s
    results = []
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {
            pool.submit(corpus.judge, module, repeat, deadline): module
            for repeat in range(repeats)
            for module in modules
        }
        for future in tqdm(as_completed(waiting), total=len(waiting), desc="submissions", disable=None):
            module = waiting[future]
            try:
                judged: Judged | None = future.result()
            except Exception as error:
                # One module must not cost the others their result; it is reported as the failure that it is.
                reason = f"{type(error).__name__}: {error}"
                judged = Judged(module, 0, "infrastructure_error", 0.0, "", reason, None, None, 0.0)
            if judged is None:
                continue
            results.append(judged)
            keep(results)
            if judged.is_wrong or judged.is_unexpected:
                tqdm.write(_complaint(judged))
    return _in_order(results)


def _in_order(results: list[Judged]) -> list[Judged]:
    return sorted(results, key=lambda judged: (judged.module.name, judged.repeat))


def _complaint(judged: Judged) -> str:
    what = "WRONG" if judged.is_wrong else "unexpected"
    return (
        f"{what}: {judged.module.name}: {judged.status}, reward {judged.reward:.2f}, "
        f"expected {', '.join(judged.module.expected)}: {judged.reason}"
    )


def as_markdown(results: list[Judged]) -> str:
    """Counts by kind."""
    lines = [
        "| kind | modules | runs | rewarded | refused | unexpected status | statuses |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    kinds = sorted({judged.module.kind for judged in results})
    for kind in [*kinds, ""]:
        rows = [judged for judged in results if kind in ("", judged.module.kind)]
        statuses = Counter(judged.status for judged in rows)
        rewarded = sum(judged.is_rewarded for judged in rows)
        lines.append(
            f"| {kind or 'all'} | {len({judged.module.name for judged in rows})} | {len(rows)} | {rewarded} "
            f"| {len(rows) - rewarded} | {sum(judged.is_unexpected for judged in rows)} "
            f"| {', '.join(f'{status} {count}' for status, count in statuses.most_common())} |"
        )
    return "\n".join(lines)


def write(name: str, modules: int, results: list[Judged], corpus: Corpus, folder: Path) -> Path:
    """Write the report of a corpus.

    Args:
        name: Name of the corpus.
        modules: How many modules it has on this device.
        results: What was judged so far.
        corpus: Where.
        folder: Where the report goes.
    """
    ordered = _in_order(results)
    body = {
        "corpus": name,
        "modules": modules,
        "runs": len(ordered),
        "wrong": [judged.module.name for judged in ordered if judged.is_wrong],
        "unexpected": [judged.module.name for judged in ordered if judged.is_unexpected],
        "rows": [judged.row() for judged in ordered],
    }
    return write_report(f"corpus-{name}", corpus.facts, body, folder)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], help="modules whose names contain one of these")
    parser.add_argument("--skip-slow", action="store_true", help="leave out what builds C++ or CUDA")
    parser.add_argument("--jobs", type=int, default=4, help="submissions in flight")
    parser.add_argument("--timeout", type=float, help="seconds for one submission")
    parser.add_argument(
        "--limit", type=float, default=math.inf, help="seconds after which no module is begun"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    corpus = Corpus(options.device, options.timeout)
    try:
        modules = [
            module
            for module in load_corpus(options.folder)
            if corpus.kind in module.devices
            and not (options.skip_slow and module.slow)
            and (not options.only or any(part in module.name for part in options.only))
        ]

        def keep(results: list[Judged]) -> Path:
            return write(options.folder.name, len(modules), results, corpus, options.out)

        results = run(corpus, modules, options.repeats, options.jobs, options.limit, keep)
    finally:
        corpus.close()
    for judged in results:
        print(
            f"{judged.module.name:<44} {judged.status:<22} {judged.reward:.2f}  {judged.cheat or judged.reason[:60]}"
        )
    print(as_markdown(results))
    print(keep(results))
    sys.exit(1 if any(judged.is_wrong for judged in results) else 0)


if __name__ == "__main__":
    main()
