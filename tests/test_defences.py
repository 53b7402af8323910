"""Each defence is needed: with it switched off, in a host of the test's own making, its exploit is rewarded.

The host module is replaced by one that patches a piece of the judge or of the worker before it starts. Only a test
can do that: there is no option for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import pytest

from gym_kernel.evaluator import host_process
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.submission import Submission
from gym_kernel.tasks import load

ROOT = Path(__file__).resolve().parents[1]

KERNEL = """
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, {value}, mask=inside)

def run(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16384),)](x, y, x.numel(), BLOCK=16384)
    return y
"""
RELU = KERNEL.format(value="tl.where(x > 0, x, 0.0)")
MODEL = "\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        {}\n"


@dataclass(frozen=True)
class Defence:
    """A defence, how to switch it off, and what it is there for.

    Attributes:
        off: Statements run in the host before it starts, which take the defence away.
        exploit: A submission that only this defence stops.
        refused: The status that it gets otherwise.
        task: Task that it is handed in for.
    """

    off: str
    exploit: str
    refused: Status
    task: str = "relu"


IMPORT = "import gym_kernel.evaluator.{0} as {0}\n"

DEFENCES = {
    "hidden input kinds": Defence(
        off=IMPORT.format("reference_bench")
        + "reference_bench.kinds_for = lambda domains: (reference_bench.InputKind.OFFICIAL,)",
        exploit=KERNEL.format(value="x") + MODEL.format("return run(x)"),
        refused=Status.INCORRECT,
    ),
    "timed outputs are compared": Defence(
        off=IMPORT.format("answer_check") + "answer_check.AnswerCheck.check_timed = lambda *_: None",
        exploit=RELU
        + "\ncalls = 0\nkept = None\n"
        + MODEL.format(
            "global calls, kept\n        calls += 1\n        if calls > 12 and kept is not None:\n"
            "            run(x[:1])\n            return kept\n        kept = run(x)\n        return kept"
        ),
        refused=Status.INCORRECT,
    ),
    "fresh contents at every call": Defence(
        off=IMPORT.format("evaluation_seed")
        + IMPORT.format("reference_bench")
        + "evaluation_seed.SeedSequence.next = lambda self: 7\n"
        + "reference_bench.kinds_for = lambda domains: (reference_bench.InputKind.SIGNED_NORMAL,)",
        exploit=RELU
        + "\nkept = {}\n"
        + MODEL.format(
            "shape = tuple(x.shape)\n        if shape in kept:\n            run(x[:1])\n"
            "            return kept[shape]\n        kept[shape] = run(x)\n        return kept[shape]"
        ),
        refused=Status.INCORRECT,
    ),
    "inputs come back untouched": Defence(
        off=IMPORT.format("input_set") + "input_set.InputSet.modified = lambda self: None",
        exploit=RELU + MODEL.format("y = run(x)\n        x.zero_()\n        return y"),
        refused=Status.INCORRECT,
    ),
    "operator trace": Defence(
        off=IMPORT.format("own_work") + "own_work.borrowed_operations = lambda names: ()",
        exploit=RELU + MODEL.format("return run(torch.relu(x))"),
        refused=Status.CHEATING,
    ),
    "profiler sees what hides from the trace": Defence(
        off=IMPORT.format("work_evidence")
        + "from gym_kernel.evaluator.worker_messages import Profile\n"
        + "work_evidence._profile = lambda profiler, trace, on_gpu: Profile()\n"
        + IMPORT.format("evidence_rules")
        + "evidence_rules.was_canary_seen = lambda *_: True",
        exploit=RELU
        + "\nfrom torch.utils._python_dispatch import _disable_current_modes\n"
        + MODEL.format("with _disable_current_modes():\n            y = torch.relu(x)\n        return run(y)"),
        refused=Status.CHEATING,
    ),
    "operators are counted and not named": Defence(
        off=IMPORT.format("operator_forest") + "operator_forest.OperatorForest._refuse = lambda *_: None",
        exploit=RELU
        + "\nfrom torch.utils._python_dispatch import _disable_current_modes\n"
        + MODEL.format(
            "torch.relu(torch.ones(2, dtype=torch.int64))\n"
            "        with _disable_current_modes():\n            y = torch.relu(x)\n        return run(y)"
        ),
        refused=Status.CHEATING,
    ),
    "whole numbers are followed to where they come from": Defence(
        off=IMPORT.format("whole_numbers") + "whole_numbers.WholeNumbers._afford = lambda *_: True",
        exploit=RELU + MODEL.format("return run(torch.clamp(x.view(torch.int32), min=0).view(torch.float32))"),
        refused=Status.CHEATING,
    ),
    "operators on whole numbers are torch's own": Defence(
        off=IMPORT.format("operator_forest") + "operator_forest._is_replaced = lambda *_: False",
        exploit=(Path(__file__).parent / "exploits" / "relu_counting_operator_replaced.py").read_text(),
        refused=Status.CHEATING,
    ),
    "witnesses are asked for a canary": Defence(
        off=IMPORT.format("evidence_rules") + "evidence_rules.was_canary_seen = lambda *_: True",
        exploit=RELU
        + """
import sys
def blind(module, name):
    take_notes = getattr(module, name)
    def forged(*arguments, **how):
        notes = take_notes(*arguments, **how)
        return type(notes)(**{n: () if isinstance(getattr(notes, n), tuple) else getattr(notes, n)
                              for n in notes.__struct_fields__})
    setattr(module, name, forged)
witnesses = sys.modules["gym_kernel.evaluator.work_evidence"]
blind(witnesses, "_profile")
blind(witnesses, "WorkEvidence")
"""
        + MODEL.format("return run(torch.relu(x))"),
        refused=Status.CHEATING,
    ),
    "profiler sees other threads": Defence(
        off=IMPORT.format("work_evidence")
        + "work_evidence._ExperimentalConfig = lambda **_: None",
        exploit=RELU
        + "\nfrom concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\n"
        + MODEL.format("return run(pool.submit(torch.relu, x).result())"),
        refused=Status.CHEATING,
    ),
    "a kernel must have run": Defence(
        off=IMPORT.format("evidence_rules")
        + "evidence_rules.refuse_cpu_work = lambda *_: ''\nevidence_rules.refuse_thin_work = lambda *_: ''",
        exploit="import numpy, torch\n"
        + MODEL.format("return torch.from_numpy(numpy.maximum(x.detach().numpy(), 0))"),
        refused=Status.CHEATING,
    ),
    "kernels must have stored most of the output": Defence(
        off=IMPORT.format("evidence_rules") + "evidence_rules.refuse_thin_work = lambda *_: ''",
        exploit=RELU
        + "\nimport ctypes, numpy\n"
        + MODEL.format(
            "run(x[:1])\n        raw = (ctypes.c_float * x.numel()).from_address(x.data_ptr())\n"
            "        found = numpy.maximum(numpy.frombuffer(raw, numpy.float32), 0)\n"
            "        return torch.from_numpy(found).view(x.shape)"
        ),
        refused=Status.CHEATING,
    ),
    "stores must still be there": Defence(
        off=IMPORT.format("store_journal")
        + "store_journal.StoreJournal.count_own = lambda self, outputs: (self.decided, 0)",
        exploit=KERNEL.format(value="0.0")
        + "\nimport ctypes, numpy\n"
        + MODEL.format(
            "y = run(x)\n"
            "        raw = [(ctypes.c_float * x.numel()).from_address(t.data_ptr()) for t in (x, y)]\n"
            "        x, out = (numpy.frombuffer(r, numpy.float32) for r in raw)\n"
            "        numpy.maximum(x, 0, out=out)\n        return y"
        ),
        refused=Status.CHEATING,
    ),
    "ways out of torch": Defence(
        off=IMPORT.format("work_evidence") + "work_evidence._CONVERSIONS.clear()",
        exploit=RELU
        + "\nimport numpy\n"
        + MODEL.format("return run(torch.from_numpy(numpy.maximum(x.numpy(), 0)))"),
        refused=Status.CHEATING,
    ),
    "plain outputs": Defence(
        off=IMPORT.format("candidate") + "candidate._check_output = lambda *_: None",
        exploit=RELU + MODEL.format("return run(x).double()"),
        refused=Status.INCORRECT,
    ),
    "tolerance is capped": Defence(
        off=IMPORT.format("numerics") + "numerics.allowed_error = lambda *_: 1e-2",
        exploit=KERNEL.format(value="tl.where(x > 0, x.to(tl.float16).to(tl.float32), 0.0)").replace(
            "x = tl.load(x_ptr + offsets, mask=inside)",
            "x = tl.minimum(tl.maximum(tl.load(x_ptr + offsets, mask=inside), -6e4), 6e4)",
        )
        + MODEL.format("return run(x)"),
        refused=Status.INCORRECT,
    ),
    "errors on the whole": Defence(
        off=IMPORT.format("numerics") + "numerics.allowed_rms = lambda *_: None",
        exploit=(ROOT / "tests/exploits/rms_norm_bf16_two_and_a_half_percent_more.py").read_text(),
        refused=Status.INCORRECT,
        task="rms_norm_bf16",
    ),
    "every element counts": Defence(
        off=IMPORT.format("numerics")
        + "from dataclasses import replace\nkeep = numerics.Comparison.agreement\n"
        + "def lenient(self):\n    found = keep(self)\n"
        + "    return replace(found, mismatched=0) if found.mismatched < 640 else found\n"
        + "numerics.Comparison.agreement = lenient",
        exploit=KERNEL.format(value="tl.where((x > 0) & (offsets % 110 > 0), x, 0.0)")
        + MODEL.format("return run(x)"),
        refused=Status.INCORRECT,
    ),
    "the judge's clock": Defence(
        off=IMPORT.format("clock_audit") + "clock_audit.ClockAudit.doubt = lambda self: ''",
        exploit=RELU
        + """
import sys
stopwatch = sys.modules['gym_kernel.evaluator.stopwatch']
real = stopwatch._now_ns
stopwatch._now_ns = lambda: real() // 100
"""
        + MODEL.format("for _ in range(6):\n            y = run(x)\n        return y"),
        refused=Status.CHEATING,
    ),
    "the roofline floor": Defence(
        off=IMPORT.format("clock_audit")
        + IMPORT.format("trial")
        + "clock_audit.ClockAudit.doubt = lambda self: ''\n"
        + "trial.refuse_impossible = lambda *_: None",
        exploit=RELU
        + "\nimport sys\nstopwatch = sys.modules['gym_kernel.evaluator.stopwatch']\nticks = [0]\n"
        + "def frozen():\n    ticks[0] += 10\n    return ticks[0]\nstopwatch._now_ns = frozen\n"
        + MODEL.format("return run(x)"),
        refused=Status.CHEATING,
    ),
}  # fmt: skip


def judge_without(name: str, folder: Path) -> dict[str, str]:
    """Evaluate an exploit in a process of its own, whose host lacks the defence."""
    folder.mkdir()
    module = f"{DEFENCES[name].off}\nfrom gym_kernel.evaluator.host import main\nmain()\n"
    (folder / "weakened_host.py").write_text(module)
    path = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, __file__, name],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def weakened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[dict[str, str]]]]:
    """What becomes of the exploits without the defences, two at once: most of the time is spent on imports."""
    folder = tmp_path_factory.mktemp("weakened")
    wanted = [item.callspec.params["name"] for item in request.session.items if is_weakened(item)]
    with ThreadPoolExecutor(2) as pool:
        yield {
            name: pool.submit(judge_without, name, folder / str(place)) for place, name in enumerate(wanted)
        }
        pool.shutdown(cancel_futures=True)


def is_weakened(item: pytest.Item) -> TypeGuard[pytest.Function]:
    return (
        isinstance(item, pytest.Function) and item.path == Path(__file__) and "weakened" in item.fixturenames
    )


@pytest.fixture(scope="module")
def sound_evaluator() -> Iterator[Evaluator]:
    evaluator = Evaluator(EvaluatorConfig(device="cpu", timeout_s=30.0))
    yield evaluator
    evaluator.close()


@pytest.mark.parametrize("name", list(DEFENCES))
def test_the_defence_stops_its_exploit(sound_evaluator: Evaluator, name: str) -> None:
    defence = DEFENCES[name]
    verdict = sound_evaluator.evaluate(Submission(load(defence.task)[0], defence.exploit))
    assert verdict.status is defence.refused, (verdict.reason, verdict.detail)


@pytest.mark.parametrize("name", list(DEFENCES))
def test_without_the_defence_the_exploit_is_rewarded(
    name: str, weakened: dict[str, Future[dict[str, str]]]
) -> None:
    verdict = weakened[name].result(280)
    assert verdict["status"] == Status.CORRECT.value, verdict


# --- the child -----------------------------------------------------------------------------------------


def main(name: str) -> None:
    """Print the verdict on an exploit by the host module that is on the path."""
    host_process._HOST_MODULE = "weakened_host"
    evaluator = Evaluator(EvaluatorConfig(device="cpu", timeout_s=30.0))
    try:
        verdict = evaluator.evaluate(Submission(load(DEFENCES[name].task)[0], DEFENCES[name].exploit))
    finally:
        evaluator.close()
    print(json.dumps({"status": verdict.status.value, "reason": verdict.reason, "detail": verdict.detail}))


if __name__ == "__main__":
    main(sys.argv[1])
