"""The flat ``info`` dictionary: the same keys with the same types after ``reset`` and every ``step``."""

from __future__ import annotations

from typing import TypedDict

from gym_kernel.evaluator.briefing import Briefing
from gym_kernel.evaluator.verdict import Verdict
from gym_kernel.tasks.task import Task

__all__ = ["KernelInfo", "reset_info", "step_info"]

_NAN = float("nan")


class KernelInfo(TypedDict):
    """What ``KernelEnv`` tells a learner beside observation and reward.

    Flat and of fixed types, so that vector environments batch it. A number that is not known is ``nan``,
    a text that does not apply is ``""``. After ``reset`` there is no verdict: ``status`` is ``""``.

    Attributes:
        task: Id of the task.
        status: Name of the outcome, for instance ``"compile_error"``.
        correct: Whether the submission was judged correct.
        cheat: Short name of the kind of cheat.
        reward: Reward of this step.
        runtime_us: Median verified time of the submission, in microseconds.
        runtime_ci_us: Half-width of its 95 % confidence interval, in microseconds.
        reference_us: Time of the eager reference, in microseconds.
        speedup: Reference time over the submission's.
        t_min_us: Roofline floor of the task on the device, in microseconds.
        roofline_fraction: ``min(t_min / runtime, 1)``.
        contended: Whether another process computed on the device meanwhile.
        max_abs_error: Largest absolute error against the oracle.
        max_rel_error: Largest relative error against the oracle.
        compile_s: Seconds for import, construction and compilation.
        queue_s: Seconds of waiting for a worker and for the device.
        evaluate_s: Seconds from the judge's receipt to the verdict.
        device: Id of the device, for instance ``"cuda:0"``.
        isolation: Isolation tier of the worker.
        evaluation_id: Identifier of the evaluation, as in the record.
    """

    task: str
    status: str
    correct: bool
    cheat: str
    reward: float
    runtime_us: float
    runtime_ci_us: float
    reference_us: float
    speedup: float
    t_min_us: float
    roofline_fraction: float
    contended: bool
    max_abs_error: float
    max_rel_error: float
    compile_s: float
    queue_s: float
    evaluate_s: float
    device: str
    isolation: str
    evaluation_id: str


def reset_info(task: Task, briefing: Briefing) -> KernelInfo:
    """Info of a new episode: what is known about the task, and no verdict yet.

    Args:
        task: The task that was drawn.
        briefing: What the evaluator knows about it.

    Returns:
        A fresh dictionary.
    """
    return KernelInfo(
        task=task.id,
        status="",
        correct=False,
        cheat="",
        reward=0.0,
        runtime_us=_NAN,
        runtime_ci_us=_NAN,
        reference_us=briefing.reference.median_us,
        speedup=_NAN,
        t_min_us=briefing.roofline.t_min_us,
        roofline_fraction=_NAN,
        contended=False,
        max_abs_error=_NAN,
        max_rel_error=_NAN,
        compile_s=_NAN,
        queue_s=_NAN,
        evaluate_s=_NAN,
        device=briefing.device.id,
        isolation=briefing.isolation,
        evaluation_id="",
    )


def step_info(verdict: Verdict, briefing: Briefing, reward: float) -> KernelInfo:
    """Info of one submission.

    Args:
        verdict: What was decided about it.
        briefing: What was known before, for the fields that the verdict leaves open.
        reward: The reward of this step.

    Returns:
        A fresh dictionary.
    """
    runtime, agreement = verdict.runtime, verdict.agreement
    return KernelInfo(
        task=verdict.task_id,
        status=verdict.status.value,
        correct=verdict.correct,
        cheat=verdict.cheat,
        reward=float(reward),
        runtime_us=_number(verdict.runtime_us),
        runtime_ci_us=_number(runtime.ci_us if runtime else None),
        reference_us=_number((verdict.reference or briefing.reference).median_us),
        speedup=_number(verdict.speedup),
        t_min_us=_number((verdict.roofline or briefing.roofline).t_min_us),
        roofline_fraction=_number(verdict.roofline_fraction),
        contended=verdict.contended,
        max_abs_error=_number(agreement.max_abs_error if agreement else None),
        max_rel_error=_number(agreement.max_rel_error if agreement else None),
        compile_s=_number(verdict.stages.load_s),
        queue_s=_number(verdict.stages.queue_s),
        evaluate_s=_number(verdict.stages.total_s),
        device=verdict.device,
        isolation=verdict.isolation,
        evaluation_id=verdict.evaluation_id,
    )


def _number(value: float | None) -> float:
    return _NAN if value is None else float(value)
