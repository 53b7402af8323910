"""How long a warm ``env.step`` takes, and where the time goes.

    python -m benchmarks.latency [--device auto] [--tasks mingpt_gelu relu] [--steps 15] [--inline]

Every step submits a text with other kernel names, so nothing that was compiled before can be found again. Each kernel
gets a host of its own; what its first reset (the host's start, the reference) and first step cost is reported apart.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tqdm import tqdm

from benchmarks.journal import Deadline, Journal
from benchmarks.kernels import Kernel, Language
from benchmarks.report import RESULTS
from benchmarks.timed_env import PARTS, NotCorrect, StepTimes, TimedEnv
from gym_kernel.evaluator.device_choice import resolve_device

__all__ = ["main"]


def kernels(tasks: list[str] | None, inline: bool, device_id: str) -> list[Kernel]:
    """The kernels to measure.

    Args:
        tasks: Tasks whose Triton examples are wanted; ``None`` for the usual ones of the device.
        inline: Whether MinGPT GELU in CUDA (on a CPU in C++) is wanted as well.
        device_id: ``"cpu"`` or ``"cuda:0"``.
    """
    on_cpu = device_id == "cpu"
    usual = ["relu"] if on_cpu else ["mingpt_gelu", "relu"]
    chosen = [Kernel(task) for task in (usual if tasks is None else tasks)]
    if inline:
        chosen.append(Kernel("mingpt_gelu", Language.CPP if on_cpu else Language.CUDA))
    return chosen


def measure(env: TimedEnv, kernel: Kernel, steps: int, deadline: Deadline) -> list[StepTimes]:
    """Play one cold step and up to ``steps`` warm ones before the deadline; the cold one comes first."""
    played = [env.step(kernel.variant(0))]
    for number in tqdm(range(1, steps + 1), desc=kernel.label):
        if deadline.has_passed:
            break
        played.append(env.step(kernel.variant(number)))
    return played


def row(kernel: Kernel, first_reset_s: float, played: list[StepTimes]) -> dict[str, Any]:
    """The results of one kernel: what came first, then medians and quartiles of the warm steps, in seconds."""
    first, *warm = played
    samples = [asdict(times) for times in warm]
    names = ("step_s", *PARTS)
    return {
        "task": kernel.label,
        "language": kernel.language.value,
        "steps": len(warm),
        "first_reset_s": first_reset_s,
        "first_step_s": asdict(first),
        "median_s": {name: median(sample[name] for sample in samples) for name in names},
        "quartiles_s": {name: _quartiles([sample[name] for sample in samples]) for name in names},
        "own_share": median(times.own_share for times in warm),
        "env_share": median(times.env_s / times.step_s for times in warm),
        "samples_s": samples,
    }


def _quartiles(samples: list[float]) -> list[float]:
    """First and third quartile; a lone sample is both."""
    if len(samples) == 1:
        return [samples[0], samples[0]]
    first, _, third = quantiles(samples, n=4, method="inclusive")
    return [first, third]


def _print(result: dict[str, Any]) -> None:
    print(f"{result['task']}: {result['steps']} warm steps")
    print(
        f"  first reset {result['first_reset_s']:.2f} s, first step {result['first_step_s']['step_s']:.3f} s"
    )
    for name, value in result["median_s"].items():
        first, third = result["quartiles_s"][name]
        print(f"  {name:14} {value * 1000:9.2f} ms  (quartiles {first * 1000:.2f}, {third * 1000:.2f})")
    print(
        f"  own share {result['own_share']:.2%}, of it the environment {result['env_share']:.2%} of the step"
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tasks", nargs="+", help="tasks whose Triton examples are measured")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--inline", action="store_true", help="MinGPT GELU in inline CUDA (C++ on a CPU) too")
    parser.add_argument("--inline-steps", type=int, default=3, help="a compiler takes tens of seconds a step")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no step is begun")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if min(options.steps, options.inline_steps) < 1:
        parser.error("--steps and --inline-steps must be 1 or more.")
    device_id = resolve_device(options.device)
    settings = {"steps": options.steps, "inline_steps": options.inline_steps}
    journal = Journal("latency", device_id, options.out, settings)
    deadline = Deadline(options.limit)
    rows: list[dict[str, Any]] = []
    facts = None
    for kernel in kernels(options.tasks, options.inline, device_id):
        if deadline.has_passed:
            print(f"{kernel.label}: left out, the limit of {options.limit:g} s has passed")
            continue
        steps = options.steps if kernel.language is Language.TRITON else options.inline_steps
        with TimedEnv(kernel.task, options.device) as env:
            facts = env.facts
            try:
                played = measure(env, kernel, steps, deadline)
            except NotCorrect as error:
                raise SystemExit(str(error)) from error
        if len(played) < 2:
            print(f"{kernel.label}: left out, the limit of {options.limit:g} s left no time for a warm step")
            continue
        rows.append(row(kernel, env.first_reset_s, played))
        _print(rows[-1])
        journal.write(facts, {"rows": rows})
    if facts is None or not rows:
        raise SystemExit(f"Nothing was measured within {options.limit:g} s; pass a longer --limit.")
    journal.finish(facts, {"rows": rows})


if __name__ == "__main__":
    main()
