"""One evaluation, start to verdict, on the judge's side.

fresh worker -> load and compile (outside the lane, several at once)
             -> lane: attach memory, hidden-seed calls against the oracle, timed calls
             -> verdict; the worker is killed before the lane goes to the next one
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol

import torch

from gym_kernel.errors import DeviceUnavailable
from gym_kernel.evaluator.admission import Places
from gym_kernel.evaluator.bench_cache import BenchCache
from gym_kernel.evaluator.clock_audit import CallOverhead
from gym_kernel.evaluator.contention import is_contended
from gym_kernel.evaluator.deadlines import Budget, StageLimits
from gym_kernel.evaluator.evaluation_seed import SeedSequence
from gym_kernel.evaluator.messages import Evaluate, Stage
from gym_kernel.evaluator.outcome import Outcome, OutcomeError, blame_failure, outcome_of_exit
from gym_kernel.evaluator.quiet_gate import QuietGate
from gym_kernel.evaluator.record import write_record
from gym_kernel.evaluator.reference_bench import ReferenceBench
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.timing import Timing
from gym_kernel.evaluator.trial import Trial
from gym_kernel.evaluator.verdict import Agreement, StageTimes, Verdict
from gym_kernel.evaluator.wake_schedule import WakeSchedule
from gym_kernel.evaluator.worker_link import (
    WorkerExited,
    WorkerLink,
    WorkerMisbehaved,
    WorkerTimeout,
)
from gym_kernel.evaluator.worker_messages import Failed, Load, Loaded, Received

__all__ = ["Evaluation", "WorkerSource", "WorkerUnavailable"]

_DEATH_WAIT_S = 10.0
_WORKER_TRIES = 3
# Inputs and outputs of one call, and as much again for what forward makes on the way.
_STAND_INS = 2
_STAND_INS_WAIT_S = 2.0
# The judge has two sets of inputs, an output and a reference's; the submission its own outputs and what leads there.
_TENSORS_ON_DEVICE = 4
# Within this a module is loaded, or has run out of time.
_LOADS_WAIT_S = 60.0
# A worker answers at once; on a machine that is busy beyond measure it may have to wait for a core.
_RECEIPT_S = 10.0
# What generating, referencing and comparing may add to a submission's own limits.
_JUDGES_SHARE_S = 60.0


class WorkerUnavailable(Exception):
    """No fresh worker could be had; the message says why."""


class WorkerSource(Protocol):
    """Where an evaluation gets its worker from, and whom it tells how far it is."""

    gate: QuietGate
    wakes: WakeSchedule

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


class Evaluation:
    """Judges one submission. Used once.

    Args:
        request: What was submitted.
        benches: The judge's references; their lane is the device's.
        source: Where workers come from.
        places: What it takes turns at with others.
        overhead: What a call costs beside the submission's own work.
    """

    def __init__(
        self,
        request: Evaluate,
        benches: BenchCache,
        source: WorkerSource,
        places: Places,
        overhead: CallOverhead,
    ) -> None:
        self._request = request
        self._benches = benches
        self._source = source
        self._places = places
        self._overhead = overhead
        self._clock = _Clock()
        self._limits = StageLimits()
        self._bench: ReferenceBench | None = None
        self._begin()

    def _begin(self) -> None:
        self._budget = Budget(self._request.timeout_s)
        self._seeds = SeedSequence(self._request.seed)
        self._link: WorkerLink | None = None

    def run(self, afterwards: ExitStack) -> Verdict:
        """Judge it.

        Args:
            afterwards: Gets what remains to be done once the verdict is on its way.

        Returns:
            The verdict. Whatever the submission did, it is one; an exception here is the judge's own failure.
        """
        outcome = self._first_try(afterwards) or self._second_try(afterwards)
        verdict = self._verdict(outcome)
        write_record(self._request, self._benches.facts, self._seeds, verdict)
        return verdict

    def _first_try(self, afterwards: ExitStack) -> Outcome | None:
        """Judge it beside others; ``None`` where device memory ran out, which may have been their doing."""
        with ExitStack() as mine:
            try:
                outcome = self._try(mine, _STAND_INS)
            except (DeviceUnavailable, torch.OutOfMemoryError):
                return None
            if outcome.out_of_memory and self._benches.facts.is_cuda:
                return None
            afterwards.push(mine.pop_all())
            return outcome

    def _second_try(self, afterwards: ExitStack) -> Outcome:
        """Judge it while nobody else takes memory to compile ahead, and with all memory given back."""
        self._begin()
        self._report(Stage.QUEUED)
        stand_ins = self._places.stand_ins
        with stand_ins.lend(stand_ins.total_bytes, _LOADS_WAIT_S):
            with self._benches.lane.hold():
                self._benches.arenas.give_back_idle()
            return self._try(afterwards, 0)

    def _try(self, afterwards: ExitStack, stand_ins: int) -> Outcome:
        try:
            bench = self._bench = self._prepare_bench()
            self._take_seat(afterwards)
            self._link = self._fresh_worker()
            link = self._load(bench, stand_ins * bench.call_bytes)
            return self._try_on_device(bench, link, afterwards)
        except OutcomeError as error:
            return error.outcome
        finally:
            if self._link is not None:
                self._source.end_worker(self._link)
                afterwards.callback(self._link.close)
                afterwards.callback(self._link.wait_for_end, _DEATH_WAIT_S)

    def _report(self, stage: Stage, limit_s: float = 0.0) -> None:
        self._source.report(self._request.id, stage, limit_s)

    def _prepare_bench(self) -> ReferenceBench:
        """The task's bench; its first use measures the reference, so it needs the lane."""
        since = time.monotonic()
        bench = self._benches.peek(self._request.task)
        if bench is None:
            self._report(Stage.WAITING_FOR_DEVICE)
            with self._benches.lane.hold(), self._source.gate.quiet():
                self._report(Stage.PREPARING, 120.0)
                bench = self._benches.get(self._request.task)
        self._clock.add("queue_s", since)
        return bench

    def _take_seat(self, afterwards: ExitStack) -> None:
        """Wait until a worker may be had; its place is free again once it has ended."""
        since = time.monotonic()
        self._report(Stage.QUEUED)
        self._places.seats.acquire()
        afterwards.callback(self._places.seats.release)
        self._clock.add("queue_s", since)

    def _fresh_worker(self) -> WorkerLink:
        since = time.monotonic()
        self._report(Stage.PREPARING, _WORKER_TRIES * self._limits.worker_s)
        problem = ""
        for _ in range(_WORKER_TRIES):
            try:
                link = self._source.take_worker(self._limits.worker_s)
            except WorkerUnavailable as error:
                problem = str(error)
                continue
            self._clock.add("queue_s", since)
            return link
        reason = f"No worker could be started: {problem}."
        raise OutcomeError(Outcome(Status.INFRASTRUCTURE_ERROR, reason=reason))

    def _hand_over(self, bench: ReferenceBench, stand_in_bytes: int) -> WorkerLink:
        """Give the submission to the worker, or to another one where that one is lost before it has looked at it."""
        order = Load(
            self._request.code,
            bench.init_arguments,
            bench.arguments,
            bench.outputs,
            bench.parameters,
            stand_in_bytes,
        )
        for _ in range(_WORKER_TRIES):
            link = self._link = self._link or self._fresh_worker()
            self._report(Stage.PREPARING, _RECEIPT_S)
            try:
                link.send(order)
                if isinstance(link.wait(_RECEIPT_S), Received):
                    return link
            except (WorkerExited, WorkerTimeout, WorkerMisbehaved):
                # No submission has run in it: killed or stopped by whatever does so on this machine.
                pass
            self._source.end_worker(link)
            link.close()
            self._link = None
        reason = (
            "Workers were lost before they could look at the submission. Is this machine short of memory?"
        )
        raise OutcomeError(Outcome(Status.INFRASTRUCTURE_ERROR, reason=reason))

    def _load(self, bench: ReferenceBench, stand_in_bytes: int) -> WorkerLink:
        """Have the submission loaded and compiled; returns the worker that did it."""
        waiting = time.monotonic()
        self._report(Stage.QUEUED)
        stand_ins = self._places.stand_ins
        with self._places.load_slots, stand_ins.lend(stand_in_bytes, _STAND_INS_WAIT_S) as lent_bytes:
            self._clock.add("queue_s", waiting)
            link = self._hand_over(bench, lent_bytes)
            started = time.monotonic()
            allowed_s = self._budget.allowance(self._limits.load_s)
            self._report(Stage.LOADING, allowed_s)
            try:
                claim = link.wait(allowed_s)
            except WorkerTimeout:
                reason = f"Importing, constructing or compiling the module took over {allowed_s:.0f} s."
                raise OutcomeError(Outcome(Status.TIMEOUT, reason=reason)) from None
            except WorkerExited as error:
                raise OutcomeError(outcome_of_exit(error.status, "while the module was loaded")) from None
            except WorkerMisbehaved as error:
                raise OutcomeError(Outcome.tampering(str(error))) from None
            finally:
                self._clock.add("load_s", started)
                self._budget.charge(started)
        if isinstance(claim, Failed):
            raise OutcomeError(blame_failure(claim))
        if not isinstance(claim, Loaded):
            raise OutcomeError(Outcome.tampering(f"{type(claim).__name__} came out of turn"))
        return link

    def _try_on_device(self, bench: ReferenceBench, link: WorkerLink, afterwards: ExitStack) -> Outcome:
        waiting = time.monotonic()
        self._report(Stage.WAITING_FOR_DEVICE)
        with self._source.wakes.on_device(), self._benches.lane.hold():
            self._clock.add("queue_s", waiting)
            self._benches.make_room(_TENSORS_ON_DEVICE * bench.call_bytes, self._source.gate)
            trial = Trial(bench, link, self._seeds, self._budget, self._limits, self._overhead)
            # The worker may go on writing until it is dead, so its memory is nobody else's before that.
            afterwards.callback(trial.release_memory)
            try:
                agreement = self._check(trial)
                runtime = self._time(trial)
                contended = is_contended(self._benches.facts, link.pid)
                return Outcome(Status.CORRECT, agreement=agreement, runtime=runtime, contended=contended)
            finally:
                self._source.end_worker(link)
                # Its death is noise for whoever comes next.
                self._source.gate.begin_noise()
                afterwards.callback(self._source.gate.end_noise)

    def _check(self, trial: Trial) -> Agreement:
        started = time.monotonic()
        self._report(Stage.CHECKING, self._budget.allowance(self._limits.checking_s) + _JUDGES_SHARE_S)
        try:
            trial.attach()
            return trial.check()
        finally:
            self._clock.add("correctness_s", started)

    def _time(self, trial: Trial) -> Timing:
        started = time.monotonic()
        self._report(Stage.TIMING, self._budget.allowance(self._limits.timing_s) + _JUDGES_SHARE_S)
        try:
            with self._source.gate.quiet():
                return trial.time()
        finally:
            self._clock.add("timing_s", started)

    def _verdict(self, outcome: Outcome) -> Verdict:
        bench, link = self._bench, self._link
        return Verdict(
            status=outcome.status,
            task_id=self._request.task.id,
            evaluation_id=self._request.evaluation_id,
            device=self._benches.facts.id,
            isolation=link.isolation if link else "",
            reason=outcome.reason,
            detail=_with_output(outcome, link) if link else outcome.detail,
            cheat=outcome.cheat,
            agreement=outcome.agreement,
            runtime=outcome.runtime,
            reference=bench.timing if bench else None,
            roofline=bench.roofline if bench else None,
            contended=outcome.contended,
            stages=self._clock.finished(),
        )


def _with_output(outcome: Outcome, link: WorkerLink) -> str:
    """The detail, with what the submission printed where that can help to find a mistake."""
    if outcome.status in (Status.CORRECT, Status.INFRASTRUCTURE_ERROR):
        return outcome.detail
    printed = link.output()
    if not printed:
        return outcome.detail
    return f"{outcome.detail}\n\nPrinted by the submission:\n{printed}".strip()
