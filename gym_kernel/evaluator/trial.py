"""A loaded submission on the device: hidden-seed calls, then timed calls, every one of them checked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch

from gym_kernel.errors import TaskError
from gym_kernel.evaluator.answer_check import AnswerCheck, TakenOutputs
from gym_kernel.evaluator.arena import Arena, view
from gym_kernel.evaluator.canary import choose_canary
from gym_kernel.evaluator.clock_audit import CallOverhead, ClockAudit
from gym_kernel.evaluator.deadlines import Budget, StageLimits
from gym_kernel.evaluator.evaluation_seed import SeedSequence
from gym_kernel.evaluator.evidence_rules import EvidenceRules
from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.evaluator.input_set import InputSet
from gym_kernel.evaluator.machine_load import is_overloaded
from gym_kernel.evaluator.outcome import Outcome, OutcomeError, blame_failure, outcome_of_exit
from gym_kernel.evaluator.reference_bench import ReferenceBench
from gym_kernel.evaluator.sampling import SamplingPlan
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.timing import Timing
from gym_kernel.evaluator.timing_rules import clock_mismatch, refuse_impossible
from gym_kernel.evaluator.verdict import Agreement
from gym_kernel.evaluator.worker_link import (
    WorkerExited,
    WorkerLink,
    WorkerMisbehaved,
    WorkerTimeout,
)
from gym_kernel.evaluator.worker_messages import (
    ArenaSpec,
    Attach,
    Attached,
    Call,
    Called,
    Claim,
    Evidence,
    Failed,
    Order,
)

__all__ = ["Trial"]

_INPUT_SETS = 2
_FIRST_SPIN_US = 500.0
_PROFILED_SHARE = 0.15
_PROFILED_KINDS = 3
_SECOND_LOOKS = 3
_CALLS_A_LOOK = 10
# More than this is compared where it is: another copy would ask too much of a card of 24 GB.
_COPIED_BYTES = 1 << 30
_POISON = 0xFF  # every float format reads it as NaN, every signed integer as -1

Result = TypeVar("Result")


@dataclass(frozen=True)
class _Returned:
    """A call whose output is there and whose evidence is still to come.

    Attributes:
        order: What the worker was told.
        inputs: What it was called on.
        called: Its claim.
        window_us: How long it took by the judge's clock, in microseconds.
        outputs: What it has returned.
    """

    order: Call
    inputs: InputSet
    called: Called
    window_us: float
    outputs: TakenOutputs


class Trial:
    """One submission on the device.

    Args:
        bench: The task's reference.
        link: The worker that has loaded the submission.
        seeds: Secret seeds.
        budget: The submission's own time.
        limits: Limits by stage.
        clock: What a call costs beside the submission's own work.
    """

    def __init__(
        self,
        bench: ReferenceBench,
        link: WorkerLink,
        seeds: SeedSequence,
        budget: Budget,
        limits: StageLimits,
        clock: CallOverhead,
    ) -> None:
        self._clock = clock
        self._bench = bench
        self._link = link
        self._seeds = seeds
        self._budget = budget
        self._limits = limits
        self._device = torch.device(bench.device_id)
        self._inputs = [bench.new_input_set() for _ in range(_INPUT_SETS)]
        self._output = bench.arenas.acquire(bench.output_bytes)
        self._parameters = bench.arenas.acquire(bench.parameter_bytes) if bench.parameters else None
        self._rules = EvidenceRules(
            bench.task.work_policy,
            on_gpu=self._device.type == "cuda",
            output_elements=sum(math.prod(slot.shape) for slot in bench.outputs),
        )
        self._answers = AnswerCheck(bench)
        self._kinds: list[InputKind] = []

    def release_memory(self) -> None:
        """Give the shared memory back; the worker must be dead."""
        for arena in self._arenas():
            self._bench.arenas.release(arena)

    def attach(self) -> None:
        """Let the worker map the shared memory and copy the parameters.

        Raises:
            OutcomeError: The submission failed.
        """
        if self._parameters is not None:
            values = self._bench.draw_parameters(self._seeds.parameters)
            for parameter in self._bench.parameters:
                view(self._parameters.bytes, parameter.slot).copy_(values[parameter.name])
        self._synchronize()
        arenas = self._arenas()
        inputs_writable = self._device.type == "cpu"
        specs = tuple(
            ArenaSpec(arena.size_bytes, writable=inputs_writable or arena is self._output) for arena in arenas
        )
        claim = self._exchange(
            Attach(specs, len(self._inputs)), tuple(a.fd for a in arenas), "while memory was attached"
        )
        if not isinstance(claim, Attached):
            raise OutcomeError(Outcome.tampering(f"{type(claim).__name__} came out of turn"))

    def check(self) -> Agreement:
        """Call the submission on every kind of hidden inputs and compare with the oracle.

        Returns:
            The worst agreement that was still in order.

        Raises:
            OutcomeError: A kind disagrees, or the submission failed or cheated.
        """
        deadline = time.monotonic() + self._limits.checking_s
        worst: Agreement | None = None
        thin = ""
        profiled = self._profiled_kinds()
        for position, kind in enumerate(self._bench.kinds):
            inputs = self._inputs[position % len(self._inputs)]
            self._bench.write_inputs(inputs, kind, self._seeds.next())
            returned = self._call(inputs, deadline, profiled=kind in profiled)
            agreement, evidence = self._compared(
                returned, deadline, partial(self._answers.check, returned.outputs, kind, inputs)
            )
            if agreement is None:
                continue
            self._kinds.append(kind)
            if worst is None or agreement.max_rel_error > worst.max_rel_error:
                worst = agreement
            # Said last: wrong values on another kind of inputs tell a policy more.
            thin = thin or self._rules.thin_work(evidence)
        self._rules.refuse_borrowed(thin)
        if worst is None:
            raise TaskError(
                f"No input kind is fit to judge task {self._bench.task.id!r} by: its reference is further from a "
                "float64 run than a submission may be. `gym-kernel tasks --check` says more."
            )
        return worst

    def _profiled_kinds(self) -> set[InputKind]:
        """Kinds in whose call the kernels are recorded: on a GPU that takes 30 ms, so not in every one."""
        kinds = self._bench.kinds
        if self._device.type == "cpu":
            return set(kinds)
        return set(self._seeds.choices.sample(kinds, min(_PROFILED_KINDS, len(kinds))))

    def time(self) -> Timing:
        """Time the submission on fresh contents, checking the output of every call.

        Among the timed calls, at random, are profiled ones whose times do not count.

        Raises:
            OutcomeError: An output disagrees, a time cannot be, or the submission failed or cheated.
        """
        deadline = time.monotonic() + self._limits.timing_s
        plan = SamplingPlan.for_device(self._device)
        audit = ClockAudit(self._clock, plan.spin_us, self._bench.copy_us)
        samples: list[float] = []
        while plan.wants_more(samples):
            profiled = self._seeds.choices.random() < _PROFILED_SHARE
            called, evidence, window_us = self._checked_call(deadline, audit.spin_us, profiled=profiled)
            if profiled:
                audit.add_kernels(evidence.work.profile.kernels_us)
            else:
                samples.append(called.elapsed_us)
                audit.add(called, window_us)
        refuse_impossible(Timing(tuple(samples)), self._bench.roofline)
        credited = audit.credited(samples)
        if self._is_doubtful(audit, deadline):
            credited = audit.charged(samples)
        return Timing(credited)

    def _checked_call(
        self, deadline: float, spin_us: float, *, profiled: bool
    ) -> tuple[Called, Evidence, float]:
        inputs = self._seeds.choices.choice(self._inputs)
        kind = self._seeds.choices.choice(self._kinds)
        self._bench.write_inputs(inputs, kind, self._seeds.next())
        returned = self._call(inputs, deadline, spin_us=spin_us, profiled=profiled)
        _, evidence = self._compared(
            returned, deadline, partial(self._answers.check_timed, returned.outputs, kind, inputs)
        )
        return returned.called, evidence, returned.window_us

    def _is_doubtful(self, audit: ClockAudit, deadline: float) -> bool:
        """Compare what the worker claims with what the judge's clock allows.

        Returns:
            Whether the claims fall short of it on a CPU that has too much to do for anybody to be blamed.

        Raises:
            OutcomeError: They fall short of it.
        """
        doubt = audit.doubt()
        overloaded = 0
        for _ in range(_SECOND_LOOKS):
            if not doubt:
                return False
            # Before anybody is blamed: the machine may just be busier than when the judge was calibrated.
            audit.start_again()
            for _ in range(_CALLS_A_LOOK):
                called, _, window_us = self._checked_call(deadline, audit.spin_us, profiled=False)
                audit.add(called, window_us)
                overloaded += is_overloaded()
            doubt = audit.doubt()
        if not doubt:
            return False
        if self._device.type == "cpu" and 2 * overloaded > _SECOND_LOOKS * _CALLS_A_LOOK:
            return True
        raise OutcomeError(clock_mismatch(doubt))

    def _arenas(self) -> list[Arena]:
        arenas = [inputs.arena for inputs in self._inputs] + [self._output]
        return arenas if self._parameters is None else [*arenas, self._parameters]

    def _taken_outputs(self) -> TakenOutputs:
        """The last call's output, the judge's own at once where there is memory for it."""
        views = tuple(view(self._output.bytes, slot) for slot in self._bench.outputs)
        if self._device.type == "cpu" or self._bench.output_bytes <= _COPIED_BYTES:
            return TakenOutputs(tuple(v.clone() for v in views), are_copies=True)
        return TakenOutputs(views, are_copies=False)

    def _call(
        self, inputs: InputSet, deadline: float, *, spin_us: float = _FIRST_SPIN_US, profiled: bool = False
    ) -> _Returned:
        """One call, up to its output."""
        self._output.bytes.fill_(_POISON)
        # As late as can be, so that nothing can be computed ahead of the call.
        inputs.publish()
        self._synchronize()
        order = Call(self._inputs.index(inputs), spin_us, profiled, choose_canary(self._seeds.choices))
        started = time.perf_counter_ns()
        claim = self._exchange(order, (), "in forward", deadline - time.monotonic())
        window_us = (time.perf_counter_ns() - started) / 1000
        if not isinstance(claim, Called):
            raise OutcomeError(Outcome.tampering(f"{type(claim).__name__} came out of turn"))
        if not 0 < claim.elapsed_us <= window_us:
            raise OutcomeError(
                Outcome.tampering(f"a call of {window_us:.0f} us was said to take {claim.elapsed_us} us")
            )
        return _Returned(order, inputs, claim, window_us, self._taken_outputs())

    def _compared(
        self, returned: _Returned, deadline: float, compare: Callable[[], Result]
    ) -> tuple[Result, Evidence]:
        """Compare a call's output while the worker puts its evidence together; returns both."""
        try:
            result = compare()
        finally:
            # Where it speaks against the submission, that goes before wrong values.
            evidence = self._evidence(returned, deadline)
        return result, evidence

    def _evidence(self, returned: _Returned, deadline: float) -> Evidence:
        evidence = self._receive(self._allowed_s(deadline - time.monotonic()), "after forward")
        if not isinstance(evidence, Evidence):
            raise OutcomeError(Outcome.tampering(f"{type(evidence).__name__} came out of turn"))
        self._refuse_modified(returned.inputs)
        self._rules.apply(returned.order, evidence)
        return evidence

    def _exchange(self, order: Order, fds: tuple[int, ...], when: str, stage_left_s: float = 60.0) -> Claim:
        allowed_s = self._allowed_s(stage_left_s)
        try:
            self._link.send(order, fds)
        except WorkerExited as error:
            raise OutcomeError(outcome_of_exit(error.status, when)) from None
        return self._receive(allowed_s, when)

    def _allowed_s(self, stage_left_s: float) -> float:
        return min(self._budget.allowance(self._limits.call_s), max(stage_left_s, 0.0))

    def _receive(self, allowed_s: float, when: str) -> Claim:
        started = time.monotonic()
        try:
            claim = self._link.wait(allowed_s)
        except WorkerTimeout:
            raise OutcomeError(
                Outcome(
                    Status.TIMEOUT, reason=f"The submission ran out of time {when} after {allowed_s:.1f} s."
                )
            ) from None
        except WorkerExited as error:
            raise OutcomeError(outcome_of_exit(error.status, when)) from None
        except WorkerMisbehaved as error:
            raise OutcomeError(Outcome.tampering(str(error))) from None
        finally:
            self._budget.charge(started)
        if isinstance(claim, Failed):
            raise OutcomeError(blame_failure(claim))
        return claim

    def _refuse_modified(self, inputs: InputSet) -> None:
        position = inputs.modified()
        if position is not None:
            raise OutcomeError(
                Outcome(
                    Status.INCORRECT,
                    reason=f"forward changed its input {position} in place; inputs must come back untouched.",
                )
            )

    def _synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
