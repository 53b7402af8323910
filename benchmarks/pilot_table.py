"""Evaluate the example kernels of the ten pilot tasks: floor, kernel, eager, roofline fraction, reward.

    python -m benchmarks.pilot_table [--device auto] [--inline]

Each time is the median of verified calls; kernel and eager reference are timed by the same judge in the same run.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.report import RESULTS, write_report
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.submission import Submission
from gym_kernel.evaluator.verdict import Verdict
from gym_kernel.rewards import turn_reward
from gym_kernel.tasks import load

KERNELS = Path(__file__).parents[1] / "examples" / "kernels"


def row(verdict: Verdict, kernel: str) -> dict[str, Any]:
    """One line of the table."""
    assert verdict.roofline is not None
    assert verdict.reference is not None
    runtime_us = verdict.runtime_us
    return {
        "task": verdict.task_id,
        "kernel": kernel,
        "status": verdict.status.value,
        "reason": verdict.reason,
        "t_min_us": verdict.roofline.t_min_us,
        "kernel_us": runtime_us,
        "kernel_ci_us": verdict.runtime.ci_us if verdict.runtime else None,
        "samples": len(verdict.runtime.samples_us) if verdict.runtime else 0,
        "eager_us": verdict.reference.median_us,
        "eager_ci_us": verdict.reference.ci_us,
        "roofline_fraction": verdict.roofline_fraction,
        "reward": turn_reward(verdict.correct, verdict.roofline.t_min_us, runtime_us or float("nan")),
        "max_rel_error": verdict.agreement.max_rel_error if verdict.agreement else None,
        "load_s": verdict.stages.load_s,
        "correctness_s": verdict.stages.correctness_s,
        "timing_s": verdict.stages.timing_s,
        "total_s": verdict.stages.total_s,
        "isolation": verdict.isolation,
        "contended": verdict.contended,
    }


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """The table as the README shows it."""
    lines = [
        "| task | kernel | status | t_min (us) | kernel (us) | eager (us) | roofline fraction | reward |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for r in rows:
        fraction = r["roofline_fraction"]
        lines.append(
            f"| {r['task']} | {r['kernel']} | {r['status']} | {r['t_min_us']:.1f} "
            f"| {r['kernel_us'] or float('nan'):.1f} | {r['eager_us']:.1f} "
            f"| {fraction if fraction is not None else float('nan'):.3f} | {r['reward']:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--inline", action="store_true", help="also the inline C++ or CUDA GELU")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    evaluator = Evaluator(EvaluatorConfig(device=options.device))
    try:
        tasks = load("pilot")
        jobs = [(task, "Triton", KERNELS / f"{task.id}.py") for task in tasks]
        facts = evaluator.brief(tasks[0]).device
        if options.inline:
            language, folder = ("CUDA", "cuda") if facts.is_cuda else ("C++", "cpp")
            jobs.append((load("mingpt_gelu")[0], language, KERNELS / folder / "mingpt_gelu.py"))
        rows = []
        for task, language, path in tqdm(jobs, desc="kernels"):
            rows.append(row(evaluator.evaluate(Submission(task, path.read_text())), language))
            if rows[-1]["status"] != "correct":
                tqdm.write(f"{task.id}: {rows[-1]['status']}: {rows[-1]['reason']}")
    finally:
        evaluator.close()
    print(as_markdown(rows))
    print(write_report("pilot", facts, {"rows": rows}, options.out))


if __name__ == "__main__":
    main()
