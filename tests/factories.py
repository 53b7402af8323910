"""Verdicts and briefings made by hand, for tests of wording and of info."""

from __future__ import annotations

from typing import Any

from gym_kernel.evaluator.briefing import Briefing, DeviceFacts, TensorFacts
from gym_kernel.evaluator.roofline import Ceilings, Roofline, Work, roofline_of
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.timing import Timing
from gym_kernel.evaluator.verdict import Agreement, StageTimes, Verdict

__all__ = ["CEILINGS", "agreement", "briefing", "compute_bound", "correct", "failed", "memory_bound"]

CEILINGS = Ceilings(
    bandwidth_bytes_per_s=4e12,
    flops_per_s={"float32": 50e12, "float16": 700e12},
    floor_bandwidth_bytes_per_s=4.8e12,
)


def memory_bound() -> Roofline:
    """4 GB at 4 TB/s: t_min is 1 ms."""
    return roofline_of(Work(bytes=4_000_000_000, flops={"float32": 1e9}), CEILINGS)


def compute_bound() -> Roofline:
    """100 GFLOP at 50 TFLOP/s: t_min is 2 ms."""
    return roofline_of(Work(bytes=1_000_000, flops={"float32": 100e9}), CEILINGS)


def briefing(device: str = "cuda:0", sizes: dict[str, int] | None = None) -> Briefing:
    """A task on a GPU, or on a CPU."""
    on_gpu = device.startswith("cuda")
    facts = DeviceFacts(
        id=device,
        name="NVIDIA H200" if on_gpu else "Some CPU",
        memory_bytes=150_000_000_000,
        l2_bytes=50_000_000,
        compute_capability="9.0" if on_gpu else "",
        threads=0 if on_gpu else 8,
        driver="580.1" if on_gpu else "",
        torch="2.9.0",
        triton="3.5.0",
        cuda="13.0" if on_gpu else "",
    )
    tensor = TensorFacts(shape=(4096, 393216), dtype="float32")
    return Briefing(
        device=facts,
        roofline=memory_bound(),
        reference=Timing((1_500.0, 1_500.0, 1_500.0)),
        inputs=(tensor,),
        outputs=(tensor,),
        isolation="process",
        sizes=sizes or {},
    )


def agreement(**changes: Any) -> Agreement:
    """A comparison that fails in one element of a thousand, with changes."""
    values: dict[str, Any] = {
        "input_kind": "large_scale",
        "elements": 1_000,
        "mismatched": 1,
        "max_abs_error": 1.23456789,
        "max_rel_error": 0.98765432,
        "tolerance": 1e-6,
        "worst_index": (3, 7),
        "worst_actual": 2.5,
    }
    return Agreement(**{**values, **changes})


def correct(runtime_us: float = 1_250.0, **changes: Any) -> Verdict:
    """A correct verdict, with changes."""
    values: dict[str, Any] = {
        "status": Status.CORRECT,
        "task_id": "relu",
        "evaluation_id": "e1",
        "device": "cuda:0",
        "isolation": "process",
        "agreement": agreement(mismatched=0, max_abs_error=1e-7, max_rel_error=1e-7),
        "runtime": Timing((runtime_us,) * 5),
        "reference": Timing((2 * runtime_us,) * 5),
        "roofline": memory_bound(),
        "stages": StageTimes(queue_s=0.1, load_s=0.2, correctness_s=0.3, timing_s=0.4, total_s=1.0),
    }
    return Verdict(**{**values, **changes})


def failed(status: Status, **changes: Any) -> Verdict:
    """A verdict of any other status, with changes."""
    values: dict[str, Any] = {
        "status": status,
        "task_id": "relu",
        "evaluation_id": "e2",
        "device": "cuda:0",
        "isolation": "process",
        "reason": "This is the reason.",
        "cheat": "torch_operator" if status is Status.CHEATING else "",
        "roofline": memory_bound(),
    }
    return Verdict(**{**values, **changes})
