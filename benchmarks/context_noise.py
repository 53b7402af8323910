"""What making and losing GPU contexts does to kernels that are timed beside it, by phase.

    python -m benchmarks.context_noise [--device cuda] [--neighbours 1 2 4] [--cycles 6] [--limit 120]

A short and a long kernel are timed without a break, as the judge times, while other processes make a context each,
wait, and are killed. Every sample is put to the phase in which it was taken: ``driver`` (cuInit), ``context``,
``tools`` (the first kernel of torch), ``idle``, ``death`` (from the kill until the process is gone), or ``quiet``. The
ratios say in which of them nothing should be timed, and the lengths of the phases whether several at once wait for each
other.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from threading import Thread, Timer
from typing import Any

import torch

from benchmarks.journal import Deadline, Journal
from benchmarks.report import RESULTS
from gym_kernel.evaluator.device_choice import resolve_device
from gym_kernel.evaluator.device_facts import read_device_facts
from gym_kernel.evaluator.stopwatch import CudaStopwatch

__all__ = ["Phase", "as_table", "main", "phase_of", "summary"]

_SIZES = {"short": 1 << 26, "long": 400 << 20}
_SPIN_US = 200.0
_REST_S = 0.3
_PHASE_LIMIT_S = 20.0
_FEWEST = 5


@dataclass(frozen=True)
class Phase:
    """Something that a neighbour did.

    Attributes:
        name: What.
        start_ns: When it began, on the monotonic clock.
        end_ns: When it was over.
    """

    name: str
    start_ns: int
    end_ns: int

    @property
    def length_ms(self) -> float:
        """How long it took, in milliseconds."""
        return (self.end_ns - self.start_ns) / 1e6


@dataclass
class _Sampler:
    """Times one kernel over and over on a thread of its own.

    Attributes:
        samples: Start and end on the monotonic clock in nanoseconds, and the time by events in microseconds.
    """

    device: torch.device
    elements: int
    samples: list[tuple[int, int, float]] = field(default_factory=list)
    _stopped: bool = False

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped = True
            thread.join(_PHASE_LIMIT_S)

    def _run(self) -> None:
        with torch.cuda.device(self.device), torch.no_grad():
            x = torch.rand(self.elements, device=self.device)
            out = torch.empty_like(x)
            stopwatch = CudaStopwatch(self.device)
            run: Callable[[], Any] = lambda: torch.add(x, 1, out=out)
            for _ in range(3):
                stopwatch.time(run, _SPIN_US)
            while not self._stopped:
                start_ns = time.monotonic_ns()
                elapsed_us = stopwatch.time(run, _SPIN_US).elapsed_us
                self.samples.append((start_ns, time.monotonic_ns(), elapsed_us))


def _cycle(count: int) -> list[Phase]:
    """Have neighbours make their contexts at the same time, wait, and kill them."""
    command = [sys.executable, "-m", "benchmarks.context_neighbour"]
    neighbours = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    phases: list[Phase] = []
    try:
        for neighbour in neighbours:
            _heard(neighbour, "ready")
        time.sleep(_REST_S)
        for neighbour in neighbours:
            assert neighbour.stdin is not None
            neighbour.stdin.write("go\n")
            neighbour.stdin.flush()
        for neighbour in neighbours:
            marks = _heard(neighbour, "idle")
            phases += [Phase(name, at, end) for (name, at), (_, end) in pairwise(marks)]
            phases.append(Phase("idle", marks[-1][1], marks[-1][1] + int(_REST_S * 1e9)))
        time.sleep(_REST_S)
    finally:
        for neighbour in neighbours:
            start_ns = time.monotonic_ns()
            neighbour.kill()
            neighbour.wait()
            phases.append(Phase("death", start_ns, time.monotonic_ns()))
    time.sleep(_REST_S)
    return phases


def _heard(neighbour: subprocess.Popen[str], until: str) -> list[tuple[str, int]]:
    """Phases that a neighbour has begun, with their times in nanoseconds, up to one of them."""
    assert neighbour.stdout is not None
    marks: list[tuple[str, int]] = []
    watchdog = Timer(_PHASE_LIMIT_S, neighbour.kill)
    watchdog.start()
    try:
        while not marks or marks[-1][0] != until:
            name, _, at_ns = neighbour.stdout.readline().partition(" ")
            if not at_ns:
                raise SystemExit(
                    "A neighbour ended before it had made its context. Is the GPU's memory full?"
                )
            marks.append((name, int(at_ns)))
    finally:
        watchdog.cancel()
    return marks


def phase_of(start_ns: int, end_ns: int, phases: list[Phase]) -> str:
    """The phase that a sample overlaps; of several the first that is not ``idle``, and ``quiet`` for none."""
    names = [p.name for p in phases if p.start_ns < end_ns and start_ns < p.end_ns]
    return next((name for name in names if name != "idle"), names[0] if names else "quiet")


def summary(samples: list[tuple[int, int, float]], phases: list[Phase]) -> list[dict[str, Any]]:
    """For each phase, how much longer the samples took than in quiet.

    Args:
        samples: Start, end (nanoseconds) and measured time (microseconds) of each.
        phases: What neighbours did meanwhile.
    """
    times: dict[str, list[float]] = defaultdict(list)
    for start_ns, end_ns, elapsed_us in samples:
        times[phase_of(start_ns, end_ns, phases)].append(elapsed_us)
    quiet_us = median(times["quiet"]) if times["quiet"] else math.nan
    rows = []
    for name, values in times.items():
        if len(values) < _FEWEST:
            continue
        lengths = [p.length_ms for p in phases if p.name == name]
        rows.append(
            {
                "phase": name,
                "samples": len(values),
                "median_us": median(values),
                "median_ratio": median(values) / quiet_us,
                "p90_ratio": quantiles(values, n=10)[-1] / quiet_us,
                "largest_ratio": max(values) / quiet_us,
                "length_ms": median(lengths) if lengths else None,
            }
        )
    return rows


def as_table(rows: list[dict[str, Any]]) -> str:
    """The results in Markdown."""
    lines = [
        "| kernel | neighbours | phase | length (ms) | samples | median (us) | median/quiet | p90/quiet | max/quiet |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        length = "" if row["length_ms"] is None else f"{row['length_ms']:.0f}"
        lines.append(
            f"| {row['kernel']} | {row['neighbours']} | {row['phase']} | {length} | {row['samples']} | "
            f"{row['median_us']:.1f} | {row['median_ratio']:.3f} | {row['p90_ratio']:.3f} | "
            f"{row['largest_ratio']:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--neighbours", type=int, nargs="+", default=[1, 2, 4], help="contexts made at once")
    parser.add_argument("--cycles", type=int, default=6, help="for each kernel and number of neighbours")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no cycle is begun")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if min(options.cycles, *options.neighbours) < 1:
        parser.error("--cycles and --neighbours take numbers of 1 or more.")
    device_id = resolve_device(options.device)
    if device_id == "cpu":
        raise SystemExit("There are contexts on a GPU only. Run this where torch.cuda.is_available().")
    device = torch.device(device_id)
    facts = read_device_facts(device)
    journal = Journal("context-noise", device_id, options.out, {"cycles": options.cycles})
    deadline = Deadline(options.limit)
    rows: list[dict[str, Any]] = []
    for count in options.neighbours:
        for kernel, elements in _SIZES.items():
            sampler, phases = _Sampler(device, elements), []
            with sampler.running():
                for _ in range(options.cycles):
                    if not deadline.has_passed:
                        phases += _cycle(count)
            found = summary(sampler.samples, phases)
            rows += [{"kernel": kernel, "neighbours": count, **row} for row in found]
            journal.write(facts, {"rows": rows})
    print(as_table(rows))
    print(journal.write(facts, {"rows": rows}))


if __name__ == "__main__":
    main()
