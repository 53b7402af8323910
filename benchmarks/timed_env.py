"""An environment whose every step is taken apart: environment, way to the judge, stages of the judge."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import gymnasium

from gym_kernel.evaluator.briefing import DeviceFacts
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.submission import Submission
from gym_kernel.evaluator.verdict import Verdict
from gym_kernel.tasks import load

__all__ = ["PARTS", "NotCorrect", "StepTimes", "TimedEnv"]

#: The parts of a step, which add up to it, in the order in which they are drawn.
PARTS = ("queue_s", "compile_s", "correctness_s", "timing_s", "rest_s", "transport_s", "env_s")


class NotCorrect(Exception):
    """A kernel that was to be measured was not judged correct; the message is the feedback."""


@dataclass(frozen=True)
class StepTimes:
    """Wall-clock seconds of one ``env.step``, and of its parts.

    Attributes:
        step_s: The whole step, by the caller's clock.
        queue_s: Waiting for a worker, a compile slot and the device.
        compile_s: Import, construction and compilation in the worker.
        correctness_s: Hidden-seed calls and their comparison.
        timing_s: Verified timing.
        rest_s: What else the judge does between request and verdict.
        transport_s: From the environment's request to the judge's receipt, and from the verdict back.
        env_s: What the environment does itself: extracting the code, wording feedback and info.
        runtime_us: The kernel's time that came out, in microseconds.
    """

    step_s: float
    queue_s: float
    compile_s: float
    correctness_s: float
    timing_s: float
    rest_s: float
    transport_s: float
    env_s: float
    runtime_us: float

    @property
    def own_share(self) -> float:
        """Share of the step that is neither compiling nor running the kernel: all of the project's machinery."""
        return (self.queue_s + self.rest_s + self.transport_s + self.env_s) / self.step_s


class TimedEnv:
    """One environment of one task on a host of its own, for use in a ``with`` block.

    The host is its own where no other evaluator of this process is open for the device.

    Args:
        task: Id of the task.
        device: As for ``KernelEnv``.

    Attributes:
        first_reset_s: Seconds of the first reset: it starts the host and measures the reference.
        facts: The device.
    """

    def __init__(self, task: str, device: str) -> None:
        self._task = task
        self._device = device
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> TimedEnv:
        with contextlib.ExitStack() as stack:
            self._env: gymnasium.Env[Any, Any] = gymnasium.make(
                "gym_kernel:KernelEnv-v0", tasks=self._task, device=self._device
            )
            stack.callback(self._env.close)
            self._seen = stack.enter_context(_observed_evaluations())
            started = time.perf_counter()
            self._env.reset(seed=0)
            self.first_reset_s = time.perf_counter() - started
            self.facts: DeviceFacts = self._ask_for_facts()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def step(self, source: str) -> StepTimes:
        """Play one episode of one submission, and time its step.

        Raises:
            NotCorrect: It was not judged correct.
        """
        self._env.reset()
        self._seen.clear()
        started = time.perf_counter()
        feedback, _, _, _, info = self._env.step(source)
        step_s = time.perf_counter() - started
        if info["status"] != "correct":
            raise NotCorrect(f"A kernel for {self._task} was judged {info['status']}.\n{feedback}")
        (seen,) = self._seen
        return _taken_apart(step_s, seen)

    def _ask_for_facts(self) -> DeviceFacts:
        # Shares the environment's host.
        evaluator = Evaluator(EvaluatorConfig(device=self._device))
        try:
            return evaluator.brief(load(self._task)[0]).device
        finally:
            evaluator.close()


@dataclass(frozen=True)
class _Evaluated:
    """What one call of the evaluator gave, and the seconds it took."""

    verdict: Verdict
    seconds: float


def _taken_apart(step_s: float, seen: _Evaluated) -> StepTimes:
    stages, runtime_us = seen.verdict.stages, seen.verdict.runtime_us
    assert runtime_us is not None, "The verdict is correct."
    staged_s = stages.queue_s + stages.load_s + stages.correctness_s + stages.timing_s
    return StepTimes(
        step_s=step_s,
        queue_s=stages.queue_s,
        compile_s=stages.load_s,
        correctness_s=stages.correctness_s,
        timing_s=stages.timing_s,
        rest_s=stages.total_s - staged_s,
        transport_s=seen.seconds - stages.total_s,
        env_s=step_s - seen.seconds,
        runtime_us=runtime_us,
    )


@contextlib.contextmanager
def _observed_evaluations() -> Iterator[list[_Evaluated]]:
    """Note every evaluation of this process in a ``with`` block: an environment keeps its verdict to itself."""
    seen: list[_Evaluated] = []
    evaluate = Evaluator.evaluate

    def observed(evaluator: Evaluator, submission: Submission) -> Verdict:
        started = time.perf_counter()
        verdict = evaluate(evaluator, submission)
        seen.append(_Evaluated(verdict, time.perf_counter() - started))
        return verdict

    Evaluator.evaluate = observed  # type: ignore[assignment, method-assign]
    try:
        yield seen
    finally:
        Evaluator.evaluate = evaluate  # type: ignore[method-assign]
