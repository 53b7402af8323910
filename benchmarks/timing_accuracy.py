"""How true the judge's times are: against CUPTI, against known bytes, quiet and busy, warm and fresh, run to run.

    python -m benchmarks.timing_accuracy [--device auto] [--rows 16 1024 ...] [--runs 5]

One kernel (``benchmarks.triad``: ``x + 2 * y``, 12 bytes an element) at sizes that take from 3 us to 5 ms on an H200.
For each size, one after the other:

- CUPTI's durations of the kernel, in a process of its own (``benchmarks.cupti_durations``); on a GPU only,
- an evaluator host is started for its first evaluation (``fresh``), then ``--runs`` more on it (``quiet``),
- as many with a busy loop for every core of the machine (``busy``).

CUPTI's clock starts and stops with the kernel; the judge's events also hold the gaps around it, a microsecond or two.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tqdm import tqdm

from benchmarks.busy import busy_cores
from benchmarks.child import ChildFailed, run_child
from benchmarks.clocks import visible_gpu
from benchmarks.journal import Deadline, Journal
from benchmarks.report import RESULTS
from benchmarks.triad import COLUMNS, KERNEL, SOURCE, moved_bytes, triad
from gym_kernel.errors import GymKernelError
from gym_kernel.evaluator.briefing import DeviceFacts
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.device_choice import resolve_device
from gym_kernel.evaluator.submission import Submission
from gym_kernel.evaluator.verdict import Verdict

__all__ = ["Measured", "as_table", "main", "measure"]

_GPU_ROWS = (16, 1_024, 4_096, 16_384, 65_536, 262_144, 1_700_000)
_CPU_ROWS = (16, 64, 256)
_CUPTI_CALLS = 50
_CUPTI_LIMIT_S = 120.0


@dataclass(frozen=True)
class Measured:
    """Everything about one size.

    Attributes:
        rows: Rows of 1,024 elements.
        cupti_us: CUPTI's duration of each call, in microseconds; ``None`` on a CPU and where CUPTI failed.
        cupti_problem: Why CUPTI failed; empty where it did not.
        fresh: Verdict of a host's first evaluation.
        quiet: Verdicts of the same host afterwards.
        busy: Verdicts with every core busy.
    """

    rows: int
    cupti_us: tuple[float, ...] | None
    cupti_problem: str
    fresh: Verdict
    quiet: tuple[Verdict, ...]
    busy: tuple[Verdict, ...]

    @property
    def refused(self) -> list[str]:
        """What the judge said of verdicts that should have been ``correct``."""
        verdicts = [self.fresh, *self.quiet, *self.busy]
        return [f"{v.status.value}: {v.reason} {v.detail}"[:400] for v in verdicts if not v.correct]

    def row(self) -> dict[str, Any]:
        """One line of the table; ``None`` where a number could not be had."""
        quiet_us, busy_us = _medians(self.quiet), _medians(self.busy)
        cupti_us = median(self.cupti_us) if self.cupti_us else None
        judged_us = median(quiet_us) if quiet_us else None
        return {
            "rows": self.rows,
            "elements": self.rows * COLUMNS,
            "moved_bytes": moved_bytes(self.rows),
            "cupti_us": cupti_us,
            "judged_us": judged_us,
            "judged_over_cupti": _ratio(judged_us, cupti_us),
            "spread": (max(quiet_us) - min(quiet_us)) / median(quiet_us) if quiet_us else None,
            "busy_spread": (max(busy_us) - min(busy_us)) / median(busy_us) if busy_us else None,
            "busy_over_quiet": _ratio(median(busy_us) if busy_us else None, judged_us),
            "fresh_over_warm": _ratio(self.fresh.runtime_us, judged_us),
            "gb_per_s": None if judged_us is None else moved_bytes(self.rows) / judged_us / 1000,
            "fresh_us": self.fresh.runtime_us,
            "quiet_us": quiet_us,
            "busy_us": busy_us,
            "cupti_samples_us": self.cupti_us,
            "cupti_problem": self.cupti_problem,
            "refused": self.refused,
        }


def _medians(verdicts: tuple[Verdict, ...]) -> list[float]:
    return [verdict.runtime_us for verdict in verdicts if verdict.runtime_us is not None]


def _ratio(value: float | None, by: float | None) -> float | None:
    return None if value is None or by is None else value / by


def measure(rows: int, device: str, runs: int) -> tuple[Measured, DeviceFacts]:
    """Measure one size; starts and ends a host and, on a GPU, a process for CUPTI.

    Args:
        rows: Rows of 1,024 elements.
        device: As for ``KernelEnv``.
        runs: Evaluations quiet, and as many busy.
    """
    device_id = resolve_device(device)
    cupti_us, problem = (None, "") if device_id == "cpu" else _by_cupti(rows, device_id)
    task = triad(rows)
    with contextlib.closing(Evaluator(EvaluatorConfig(device=device))) as evaluator:

        def evaluate() -> Verdict:
            return evaluator.evaluate(Submission(task, SOURCE))

        facts = evaluator.brief(task).device
        fresh = evaluate()
        quiet = tuple(evaluate() for _ in range(runs))
        with busy_cores():
            busy = tuple(evaluate() for _ in range(runs))
    return Measured(rows, cupti_us, problem, fresh, quiet, busy), facts


def _by_cupti(rows: int, device_id: str) -> tuple[tuple[float, ...] | None, str]:
    """Durations by CUPTI, or why there are none."""
    with tempfile.TemporaryDirectory(prefix="triad-") as folder:
        module = Path(folder) / "triad_module.py"
        module.write_text(SOURCE, encoding="utf-8")
        shapes = json.dumps([[rows, COLUMNS]] * 2)
        arguments = [str(module), KERNEL, shapes, str(_CUPTI_CALLS)]
        visible = {"CUDA_VISIBLE_DEVICES": visible_gpu(device_id)}
        try:
            done = run_child("benchmarks.cupti_durations", arguments, _CUPTI_LIMIT_S, visible)
        except ChildFailed as error:
            return None, str(error)
    return tuple(done.answer["kernels_us"]), ""


def as_table(rows: list[dict[str, Any]]) -> str:
    """The results in Markdown, a line for each size."""
    lines = [
        "| bytes | CUPTI (us) | judged (us) | judged/CUPTI | run to run | busy/quiet | fresh/warm | GB/s |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        cells = [
            f"{row['moved_bytes']:,}",
            _shown(row["cupti_us"], ".2f"),
            _shown(row["judged_us"], ".2f"),
            _shown(row["judged_over_cupti"], ".3f"),
            _shown(row["spread"], ".2%"),
            _shown(row["busy_over_quiet"], ".3f"),
            _shown(row["fresh_over_warm"], ".3f"),
            _shown(row["gb_per_s"], ".1f"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rows", type=int, nargs="+", help="sizes, in rows of 1,024 elements")
    parser.add_argument(
        "--runs", type=int, default=5, help="evaluations of each size quiet, and as many busy"
    )
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no size is begun")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    device_id = resolve_device(options.device)
    sizes = options.rows or (_CPU_ROWS if device_id == "cpu" else _GPU_ROWS)
    if min(options.runs, *sizes) < 1:
        parser.error("--runs and --rows take numbers of 1 or more.")
    journal = Journal("timing-accuracy", device_id, options.out, {"runs": options.runs})
    deadline = Deadline(options.limit)
    rows: list[dict[str, Any]] = []
    problems: list[str] = []
    facts = None
    for size in tqdm(sizes, desc="sizes"):
        if deadline.has_passed:
            tqdm.write(f"{size} rows: left out, the limit of {options.limit:g} s has passed")
            continue
        try:
            measured, facts = measure(size, options.device, options.runs)
        except GymKernelError as error:
            problems.append(f"{size} rows: {error}")
            continue
        rows.append(measured.row())
        problems += [each for each in (measured.cupti_problem, *measured.refused) if each]
        journal.write(facts, {"rows": rows, "problems": problems})
    if facts is None:
        raise SystemExit(
            problems[0] if problems else f"Nothing was measured: --limit {options.limit:g} is too short."
        )
    print(as_table(rows))
    journal.finish(facts, {"rows": rows, "problems": problems})
    for problem in problems[:5]:
        print(f"PROBLEM {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
