"""One evaluation, start to verdict, on the judge's side.

fresh worker -> load and compile (outside the lane, several at once)
             -> lane: attach memory, hidden-seed calls against the oracle, timed calls
             -> verdict; the worker is killed before the lane goes to the next one
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol

from gym_kernel.evaluator.clock_audit import CallOverhead
from gym_kernel.evaluator.contention import is_contended
from gym_kernel.evaluator.deadlines import Budget, StageLimits
from gym_kernel.evaluator.evaluation_seed import SeedSequence
from gym_kernel.evaluator.messages import Evaluate, Stage
from gym_kernel.evaluator.outcome import Outcome, OutcomeError, blame_failure, outcome_of_exit
from gym_kernel.evaluator.quiet_gate import QuietGate
from gym_kernel.evaluator.record import write_record
from gym_kernel.evaluator.reference_bench import BenchCache, ReferenceBench
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.trial import Trial
from gym_kernel.evaluator.verdict import StageTimes, Verdict
from gym_kernel.evaluator.worker_link import (
    WorkerExited,
    WorkerLink,
    WorkerMisbehaved,
    WorkerTimeout,
)
from gym_kernel.evaluator.worker_messages import Failed, Load, Loaded

__all__ = ["WorkerSource", "WorkerUnavailable", "evaluate"]

_DEATH_WAIT_S = 10.0
_WORKER_TRIES = 3


class WorkerUnavailable(Exception):
    """No fresh worker could be had; the message says why."""


class WorkerSource(Protocol):
    """Where an evaluation gets its worker from, and whom it tells how far it is."""

    gate: QuietGate

    def take_worker(self, timeout_s: float) -> WorkerLink:
        """A worker that is ready; raises :class:`WorkerUnavailable`."""

    def end_worker(self, link: WorkerLink) -> None:
        """Have a worker killed."""

    def report(self, request_id: int, stage: Stage, limit_s: float) -> None:
        """Say that a stage has begun."""


class _Clock:
    """Adds up the wall-clock seconds of the stages."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.stages = StageTimes()

    def add(self, field: str, since: float) -> None:
        spent = time.monotonic() - since
        self.stages = replace(self.stages, **{field: getattr(self.stages, field) + spent})

    def finished(self) -> StageTimes:
        return replace(self.stages, total_s=time.monotonic() - self.started)


def evaluate(
    request: Evaluate,
    benches: BenchCache,
    source: WorkerSource,
    load_slots: threading.Semaphore,
    overhead: CallOverhead,
    afterwards: ExitStack,
) -> Verdict:
    """Judge one submission.

    Args:
        request: What was submitted.
        benches: The judge's references; their lane is the device's.
        source: Where workers come from.
        load_slots: Bounds how many submissions compile at once.
        overhead: What a call costs beside the submission's own work.
        afterwards: What remains to be done once the verdict is on its way.

    Returns:
        The verdict. Whatever the submission did, it is one; an exception here is the judge's own failure.
    """
    clock = _Clock()
    limits = StageLimits()
    budget = Budget(request.timeout_s)
    seeds = SeedSequence(request.seed)
    link: WorkerLink | None = None
    isolation = ""
    bench: ReferenceBench | None = None
    try:
        bench = _prepare_bench(request, benches, source, clock)
        link = _fresh_worker(request, source, limits, clock)
        _load(request, bench, link, source, load_slots, budget, limits, clock)
        outcome = _try_on_device(
            request, bench, benches, link, source, budget, limits, seeds, clock, overhead, afterwards
        )
    except OutcomeError as error:
        outcome = error.outcome
    finally:
        if link is not None:
            source.end_worker(link)
            afterwards.callback(link.close)
            afterwards.callback(link.wait_for_end, _DEATH_WAIT_S)
    if link is not None:
        outcome = _with_output(outcome, link)
        isolation = link.isolation
    verdict = _verdict(request, benches, bench, outcome, isolation, clock)
    write_record(request, benches.facts, seeds, verdict)
    return verdict


def _prepare_bench(
    request: Evaluate, benches: BenchCache, source: WorkerSource, clock: _Clock
) -> ReferenceBench:
    """The task's bench; its first use measures the reference, so it needs the lane."""
    since = time.monotonic()
    bench = benches.peek(request.task)
    if bench is None:
        source.report(request.id, Stage.WAITING_FOR_DEVICE, 0.0)
        with benches.lane.hold():
            source.report(request.id, Stage.PREPARING, 120.0)
            bench = benches.get(request.task)
    clock.add("queue_s", since)
    return bench


def _fresh_worker(request: Evaluate, source: WorkerSource, limits: StageLimits, clock: _Clock) -> WorkerLink:
    since = time.monotonic()
    source.report(request.id, Stage.PREPARING, _WORKER_TRIES * limits.worker_s)
    problem = ""
    for _ in range(_WORKER_TRIES):
        try:
            link = source.take_worker(limits.worker_s)
        except WorkerUnavailable as error:
            problem = str(error)
            continue
        clock.add("queue_s", since)
        return link
    raise OutcomeError(Outcome(Status.INFRASTRUCTURE_ERROR, reason=f"No worker could be started: {problem}."))


def _load(
    request: Evaluate,
    bench: ReferenceBench,
    link: WorkerLink,
    source: WorkerSource,
    load_slots: threading.Semaphore,
    budget: Budget,
    limits: StageLimits,
    clock: _Clock,
) -> None:
    waiting = time.monotonic()
    source.report(request.id, Stage.QUEUED, 0.0)
    with load_slots:
        clock.add("queue_s", waiting)
        started = time.monotonic()
        allowed_s = budget.allowance(limits.load_s)
        source.report(request.id, Stage.LOADING, allowed_s)
        try:
            link.send(
                Load(request.code, bench.init_arguments, bench.arguments, bench.outputs, bench.parameters)
            )
            claim = link.wait(allowed_s)
        except WorkerTimeout:
            raise OutcomeError(
                Outcome(
                    Status.TIMEOUT,
                    reason=f"Importing, constructing or compiling the module took over {allowed_s:.0f} s.",
                )
            ) from None
        except WorkerExited as error:
            raise OutcomeError(outcome_of_exit(error.status, "while the module was loaded")) from None
        except WorkerMisbehaved as error:
            raise OutcomeError(Outcome.tampering(str(error))) from None
        finally:
            clock.add("load_s", started)
            budget.charge(started)
    if isinstance(claim, Failed):
        raise OutcomeError(blame_failure(claim))
    if not isinstance(claim, Loaded):
        raise OutcomeError(Outcome.tampering(f"{type(claim).__name__} came out of turn"))


def _try_on_device(
    request: Evaluate,
    bench: ReferenceBench,
    benches: BenchCache,
    link: WorkerLink,
    source: WorkerSource,
    budget: Budget,
    limits: StageLimits,
    seeds: SeedSequence,
    clock: _Clock,
    overhead: CallOverhead,
    afterwards: ExitStack,
) -> Outcome:
    waiting = time.monotonic()
    source.report(request.id, Stage.WAITING_FOR_DEVICE, 0.0)
    with benches.lane.hold():
        clock.add("queue_s", waiting)
        trial = Trial(bench, link, seeds, budget, limits, overhead)
        # The worker may go on writing until it is dead, so its memory is nobody else's before that.
        afterwards.callback(trial.release_memory)
        try:
            started = time.monotonic()
            source.report(request.id, Stage.CHECKING, budget.allowance(limits.checking_s) + 60.0)
            try:
                trial.attach()
                agreement = trial.check()
            finally:
                clock.add("correctness_s", started)
            started = time.monotonic()
            source.report(request.id, Stage.TIMING, budget.allowance(limits.timing_s) + 60.0)
            try:
                with source.gate.quiet():
                    runtime = trial.time()
            finally:
                clock.add("timing_s", started)
            contended = is_contended(benches.facts, link.pid)
            return Outcome(Status.CORRECT, agreement=agreement, runtime=runtime, contended=contended)
        finally:
            source.end_worker(link)
            # Its death is noise for whoever comes next.
            source.gate.begin_noise()
            afterwards.callback(source.gate.end_noise)


def _with_output(outcome: Outcome, link: WorkerLink) -> Outcome:
    """Add what the submission printed, where that can help to find a mistake."""
    if outcome.status in (Status.CORRECT, Status.INFRASTRUCTURE_ERROR):
        return outcome
    printed = link.output()
    if not printed:
        return outcome
    detail = f"{outcome.detail}\n\nPrinted by the submission:\n{printed}".strip()
    return replace(outcome, detail=detail)


def _verdict(
    request: Evaluate,
    benches: BenchCache,
    bench: ReferenceBench | None,
    outcome: Outcome,
    isolation: str,
    clock: _Clock,
) -> Verdict:
    return Verdict(
        status=outcome.status,
        task_id=request.task.id,
        evaluation_id=request.evaluation_id,
        device=benches.facts.id,
        isolation=isolation,
        reason=outcome.reason,
        detail=outcome.detail,
        cheat=outcome.cheat,
        agreement=outcome.agreement,
        runtime=outcome.runtime,
        reference=bench.timing if bench else None,
        roofline=bench.roofline if bench else None,
        contended=outcome.contended,
        stages=clock.finished(),
    )
