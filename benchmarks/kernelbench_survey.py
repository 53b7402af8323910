"""Try every problem of KernelBench on the judge's own bench: which small sizes work, and what impostors pass.

    python -m benchmarks.kernelbench_survey CHECKOUT [--device cpu] [--level 1 --number 19] [--write-known]

For each problem the ways to small sizes are tried until the reference runs in one (on a GPU: the official sizes alone).
Then impostors that know nothing of the inputs are compared with the reference, by KernelBench's own rule on the
official inputs and by the judge's on every kind that is fit to judge by. Each try is a process of its own, with a
limit of time and, on a CPU, of memory. ``--write-known`` writes hashes and ways into the package.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import math
import os
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.report import RESULTS
from gym_kernel.evaluator.arena_pool import ArenaPool
from gym_kernel.evaluator.device_choice import resolve_device
from gym_kernel.evaluator.device_facts import read_device_facts
from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.evaluator.numerics import compare
from gym_kernel.evaluator.reference_bench import ReferenceBench
from gym_kernel.evaluator.roofline import Ceilings
from gym_kernel.evaluator.work import count_work
from gym_kernel.evaluator.worker_messages import TensorSlot
from gym_kernel.tasks.kernelbench.building import build_task
from gym_kernel.tasks.kernelbench.pinning import REVISION, content_hash, level_hash
from gym_kernel.tasks.kernelbench.problem import Problem
from gym_kernel.tasks.kernelbench.reading import read_problems
from gym_kernel.tasks.kernelbench.shrinking import OFFICIAL, WAYS, small_sizes
from gym_kernel.tasks.kernelbench.static import ModuleFacts, read_module
from gym_kernel.tasks.task import Task, TaskScale

KNOWN = Path(__file__).parents[1] / "gym_kernel" / "tasks" / "kernelbench" / "known.py"

# Nothing here is divided by a rate; the bench only wants to have some.
_CEILINGS = Ceilings(
    bandwidth_bytes_per_s=1e10, flops_per_s={"float32": 1e11}, floor_bandwidth_bytes_per_s=1e12
)
# KernelBench's own bound for float32: torch.allclose with this as atol and rtol.
_THEIR_TOLERANCE = 1e-4
_MEMORY_BYTES = 9 << 30
_SMALL_INPUT_ELEMENTS = 1 << 17
_SMALL_OUTPUT_ELEMENTS = 1 << 18
_QUICK_REFERENCE_US = 60_000.0
_FEW_KINDS = (InputKind.OFFICIAL, InputKind.SIGNED_NORMAL)


def survey(problem: Problem, device: str, limit_s: float) -> dict[str, Any]:
    """Try a problem in every way until one is good, and keep the best."""
    facts = read_module(ast.parse(problem.source))
    base = {"level": problem.level, "number": problem.number, "name": problem.name}
    if problem.level == 4:
        return {**base, "ok": False, "problem": "needs pretrained weights"}
    task = build_task(problem)
    found: dict[str, Any] | None = None
    failures: list[str] = []
    for tried in _that_work(task, facts, device, limit_s, failures):
        if not tried["examined"]:
            # Large as it is, it is worth a look; a few kinds of inputs have to do.
            tried.update(_in_process(_at(task, tried["sizes"]), device, 4 * limit_s, _FEW_KINDS))
        if not tried["ok"]:
            failures.append(f"way {tried['way']}: {tried['problem']}")
            continue
        found = found or tried
        if tried["fit_kinds"]:
            found = tried
            break
        # Sizes may be so small that the reference itself is ill-posed at them.
        failures.append(f"way {tried['way']}: ill-posed on every kind of inputs")
    if found is None:
        return {**base, "ok": False, "problem": failures[-1] if failures else "", "failures": failures}
    return {**base, **found, "failures": failures}


def _that_work(
    task: Task, facts: ModuleFacts, device: str, limit_s: float, failures: list[str]
) -> Iterator[dict[str, Any]]:
    """Ways in which the reference runs, smallest sizes first; what goes wrong in others goes into ``failures``."""
    seen: list[dict[str, int]] = []
    for way in [OFFICIAL] if device != "cpu" else [*range(len(WAYS)), OFFICIAL]:
        sizes = small_sizes(facts, way)
        if sizes in seen:
            continue
        seen.append(sizes)
        found = _in_process(_at(task, sizes), device, limit_s, tuple(InputKind))
        found.update(way=way, sizes=sizes)
        if found["ok"]:
            yield found
            continue
        failures.append(f"way {way}: {found['problem']}")
        if found.get("too_large"):
            return


def _at(task: Task, sizes: dict[str, int]) -> Task:
    return replace(task, sizes={TaskScale.SMALL: sizes} if sizes else {})


def _warm_up() -> None:
    """Import what the bench imports late, so that no child has to; on one thread, which a fork leaves whole."""
    torch.set_num_threads(1)
    count_work(torch.nn.Linear(2, 2), [torch.ones(1, 2)], 1.0)


def _in_process(task: Task, device: str, limit_s: float, kinds: tuple[InputKind, ...]) -> dict[str, Any]:
    """Run :func:`_examine` in a child process; never raises for what the reference does."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(task, device, writer, kinds)
    os.close(writer)
    return _await(pid, reader, limit_s)


def _child(task: Task, device: str, writer: int, kinds: tuple[InputKind, ...]) -> None:
    try:
        os.setsid()
        if device == "cpu":
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
            torch.set_num_threads(1)
        result = _examine(task, device, kinds)
    except BaseException as error:
        text = f"{type(error).__name__}: {error}".split("\n")[0][:300]
        result = {"ok": False, "problem": text, "too_large": "allocate memory" in text}
    with os.fdopen(writer, "w") as stream:
        stream.write(json.dumps(result))
    os._exit(0)


def _await(pid: int, reader: int, limit_s: float) -> dict[str, Any]:
    deadline = time.monotonic() + limit_s
    os.set_blocking(reader, False)
    heard = b""
    try:
        while time.monotonic() < deadline:
            try:
                piece = os.read(reader, 1 << 16)
            except BlockingIOError:
                time.sleep(0.02)
                continue
            if not piece:
                break
            heard += piece
        else:
            return {"ok": False, "problem": f"over {limit_s:.0f} s", "too_large": True}
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    found: dict[str, Any] = json.loads(heard) if heard else {"ok": False, "problem": "its process died"}
    return found


def _examine(task: Task, device: str, kinds: tuple[InputKind, ...]) -> dict[str, Any]:
    """What the judge's bench and the impostors say of a task; with all kinds, only where it is small."""
    where = torch.device(device)
    bench = ReferenceBench(task, read_device_facts(where), _CEILINGS, ArenaPool(where, keep_bytes=0))
    result = {
        "ok": True,
        "examined": False,
        "input_elements": _elements(
            argument.slot for argument in bench.arguments if argument.slot is not None
        ),
        "output_elements": _elements(bench.outputs),
        "reference_us": bench.timing.median_us,
    }
    if device == "cpu" and kinds == tuple(InputKind) and not _is_small(result):
        return result
    return {**result, "examined": True, **_impostors_on(bench, kinds)}


def _elements(slots: Iterable[TensorSlot]) -> int:
    return sum(math.prod(slot.shape) for slot in slots)


def _is_small(result: dict[str, Any]) -> bool:
    return (
        result["input_elements"] <= _SMALL_INPUT_ELEMENTS
        and result["output_elements"] <= _SMALL_OUTPUT_ELEMENTS
        and result["reference_us"] <= _QUICK_REFERENCE_US
    )


def _impostors_on(bench: ReferenceBench, kinds: tuple[InputKind, ...]) -> dict[str, Any]:
    task = bench.task
    fit: list[str] = []
    passed: dict[str, list[str]] = {}
    theirs: list[str] = []
    own: dict[str, list[float]] = {}
    for kind in (kind for kind in bench.kinds if kind in kinds):
        inputs, others = bench.new_input_set(), bench.new_input_set()
        bench.write_inputs(inputs, kind, 11)
        bench.write_inputs(others, kind, 1_000_003)
        other = [output.clone() for output in bench.expected(others).outputs]
        expected = bench.expected(inputs)
        impostors = dict(_impostors(expected.outputs, other, inputs.arguments()))
        if kind is InputKind.OFFICIAL:
            theirs = [name for name, made in impostors.items() if _passes_theirs(made, expected.outputs)]
        errors = bench.errors.at(kind, inputs, expected)
        if errors is None:
            continue
        own[kind.value] = [error.largest for error in errors]
        fit.append(kind.value)
        for name, made in impostors.items():
            agreed = [
                compare(m, e, tolerance=task.tolerance, reference_error=error, scale=scale).passed
                for m, e, error, scale in zip(made, expected.outputs, errors, expected.scales, strict=True)
            ]
            if all(agreed):
                passed.setdefault(name, []).append(kind.value)
    return {
        "kinds": len([kind for kind in bench.kinds if kind in kinds]),
        "fit_kinds": fit,
        "own_errors": own,
        "passes_theirs": theirs,
        "passes_judge": {name: kinds for name, kinds in passed.items() if len(kinds) == len(fit)},
        "passes_some": {name: kinds for name, kinds in passed.items() if len(kinds) < len(fit)},
        "repeats": _repeats(bench),
        "told_by_parameters": _told_by_parameters(bench),
        "parameters": sum(value.numel() for value in bench.parameter_values().values()),
    }


def _impostors(
    expected: Iterable[torch.Tensor], other: Iterable[torch.Tensor], inputs: Iterable[Any]
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    expected, other = list(expected), list(other)
    yield "zeros", [torch.zeros_like(e) for e in expected]
    yield "ones", [torch.ones_like(e) for e in expected]
    floating = all(e.is_floating_point() for e in expected)
    if floating:
        yield "mean", [torch.full_like(o, float(o.double().mean())) for o in other]
        yield (
            "batch mean",
            [o.mean(0, keepdim=True).expand_as(o).contiguous() if o.dim() else o for o in other],
        )
    yield "other inputs' output", other
    for position, value in enumerate(inputs):
        if len(expected) == 1 and isinstance(value, torch.Tensor) and value.numel() == expected[0].numel():
            yield f"input {position}", [value.to(expected[0].dtype).reshape(expected[0].shape)]


def _passes_theirs(made: Iterable[torch.Tensor], expected: Iterable[torch.Tensor]) -> bool:
    return all(
        torch.allclose(m, e, atol=_THEIR_TOLERANCE, rtol=_THEIR_TOLERANCE)
        if e.is_floating_point()
        else torch.equal(m, e)
        for m, e in zip(made, expected, strict=True)
    )


def _outputs(bench: ReferenceBench, model: torch.nn.Module) -> list[torch.Tensor]:
    inputs = bench.new_input_set()
    bench.write_inputs(inputs, InputKind.OFFICIAL, 5)
    with torch.no_grad():
        result = model(*inputs.arguments())
    return [o.clone() for o in (result if isinstance(result, (tuple, list)) else [result])]


def _largest_difference(one: list[torch.Tensor], two: list[torch.Tensor]) -> float:
    """Largest difference of two runs by the RMS of the first."""
    worst = 0.0
    for a, b in zip(one, two, strict=True):
        a, b = a.double(), b.double()
        scale = float(a.square().mean().sqrt()) or 1.0
        worst = max(worst, float((a - b).abs().max()) / scale)
    return worst


def _repeats(bench: ReferenceBench) -> float:
    """How far two runs of the reference on the same inputs are apart."""
    return _largest_difference(_outputs(bench, bench._model), _outputs(bench, bench._model))


def _told_by_parameters(bench: ReferenceBench) -> float:
    """How far a second model is off that has the first one's parameters and buffers, and nothing else of it."""
    torch.manual_seed(99)
    with torch.device(bench.device_id):
        twin = bench._namespace["Model"](*bench.init_arguments)
    twin.to(bench.device_id).load_state_dict(bench._model.state_dict())
    return _largest_difference(_outputs(bench, bench._model), _outputs(bench, twin))


def write_known(rows: list[dict[str, Any]], problems: tuple[Problem, ...]) -> None:
    """Write hashes and ways into the package."""
    ways = {(row["level"], row["number"]): _way_of(row) for row in rows}
    levels = {level: level_hash(p for p in problems if p.level == level) for level in (1, 2, 3, 4)}
    table = []
    for problem in problems:
        way = ways.get((problem.level, problem.number), "?")
        table.append(f"{problem.level} {problem.number} {content_hash(problem.source)[:16]} {way}")
    text = KNOWN.read_text()
    head = text[: text.index("LEVEL_HASHES")]
    middle = text[text.index("#: Level, number") : text.index('"""\\\n') + 5]
    hashes = "".join(f'    {level}: "{value}",\n' for level, value in levels.items())
    KNOWN.write_text(
        head + "LEVEL_HASHES: dict[int, str] = {\n" + hashes + "}\n\n" + middle + "\n".join(table) + '\n"""\n'
    )


def _way_of(row: dict[str, Any]) -> str:
    """The way that works; ``?`` where nobody knows, as the machine was too small or nothing was tried."""
    if row["ok"]:
        return str(row["way"])
    # What fails for another reason than its size at the smallest sizes has some that depend on each other.
    failures = row.get("failures") or ["over 0 s"]
    return "?" if re.search(r"allocate memory|over \d+ s", failures[0]) else str(OFFICIAL)


def write_rows(path: Path, rows: list[dict[str, Any]], device: str) -> list[dict[str, Any]]:
    """Write the results; those of earlier runs on other problems are kept, and all are returned."""
    earlier = json.loads(path.read_text())["problems"] if path.exists() else []
    merged = {(row["level"], row["number"]): row for row in [*earlier, *rows]}
    every = [merged[key] for key in sorted(merged)]
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(row) for row in every)
    head = json.dumps({"revision": REVISION, "torch": torch.__version__, "device": device})
    path.write_text(f'{head[:-1]}, "problems": [\n{lines}\n]}}\n')
    return every


def summary(rows: list[dict[str, Any]]) -> str:
    """What came out, in a few lines for each level."""
    lines = []
    for level in sorted({row["level"] for row in rows}):
        of_level = [row for row in rows if row["level"] == level]
        ran = [row for row in of_level if row["ok"]]
        ways = Counter("official" if row["way"] == OFFICIAL else row["way"] for row in ran)
        lines.append(
            f"level {level}: {len(of_level)} problems, {len(ran)} ran, "
            f"{sum(row['input_elements'] <= 1 << 16 for row in ran)} with inputs of at most 65,536 elements, "
            f"{sum(bool(row['passes_theirs']) for row in ran)} let an impostor pass by KernelBench's rule, "
            f"{sum(bool(row['passes_judge']) or not row['fit_kinds'] for row in ran)} by the judge's; ways {dict(ways)}"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the survey."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernelbench", type=Path, help="a checkout of KernelBench, or a data file of it")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--level", type=int, action="append")
    parser.add_argument("--number", type=int, action="append")
    parser.add_argument("--limit-s", type=float, default=40.0, help="seconds for one try")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write-known", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    device = resolve_device(options.device) if options.device != "cpu" else "cpu"
    _warm_up()
    every = read_problems(options.kernelbench)
    chosen = [
        problem
        for problem in every
        if (not options.level or problem.level in options.level)
        and (not options.number or problem.number in options.number)
    ]
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda problem: survey(problem, device, options.limit_s), chosen):
            rows.append(row)
            print(json.dumps(row), flush=True)
    rows = write_rows(options.out / f"kernelbench-survey-{device.partition(':')[0]}.json", rows, device)
    print(summary(rows), file=sys.stderr)
    if options.write_known:
        write_known(rows, every)


if __name__ == "__main__":
    main()
