"""A task on a device: its reference, constructed and measured once, and its oracle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gym_kernel.errors import TaskError
from gym_kernel.evaluator.arena import lay_out
from gym_kernel.evaluator.arena_pool import ArenaPool
from gym_kernel.evaluator.briefing import Briefing, DeviceFacts, TensorFacts
from gym_kernel.evaluator.error_bound import ErrorSize
from gym_kernel.evaluator.input_kinds import BUILT_ON_OFFICIAL, InputKind, kinds_for, official_inputs
from gym_kernel.evaluator.input_set import InputSet
from gym_kernel.evaluator.kind_tolerance import tolerance_on
from gym_kernel.evaluator.numerics import Comparison, output_scale
from gym_kernel.evaluator.parameter_draw import Liberty, ParameterDraw
from gym_kernel.evaluator.reference_errors import ReferenceErrors
from gym_kernel.evaluator.reference_source import TASKS_OWN, domains_of, execute_reference
from gym_kernel.evaluator.reference_timing import time_copy, time_reference
from gym_kernel.evaluator.roofline import Ceilings, roofline_of
from gym_kernel.evaluator.timing import Timing
from gym_kernel.evaluator.verdict import Agreement
from gym_kernel.evaluator.work import count_work
from gym_kernel.evaluator.worker_messages import Argument, Parameter, TensorSlot
from gym_kernel.tasks.task import Task, TaskScale, Tolerance

__all__ = ["Expected", "ReferenceBench"]

_CHUNK_ELEMENTS = {"cuda": 1 << 26, "cpu": 1 << 22}
_WEIGHT_SEED = 20_240_229


@dataclass(frozen=True)
class Expected:
    """What one set of inputs should give, as the reference computes it at its own precision.

    Attributes:
        outputs: One tensor for each output.
        scales: RMS of the finite values of each.
    """

    outputs: tuple[torch.Tensor, ...]
    scales: tuple[float, ...]


class ReferenceBench:
    """A task's reference on a device.

    Only one thread may use it at a time; it is used inside the device lane.

    Args:
        task: The task.
        facts: The device.
        ceilings: What the device can do.
        arenas: Where shared memory comes from.

    Raises:
        TaskError: The reference module does not run.
    """

    def __init__(self, task: Task, facts: DeviceFacts, ceilings: Ceilings, arenas: ArenaPool) -> None:
        self.task = task
        self.arenas = arenas
        self._facts = facts
        self.device_id = facts.id
        self._device = torch.device(facts.id)
        self._scale = TaskScale.OFFICIAL if facts.is_cuda else TaskScale.SMALL
        self._namespace = execute_reference(task, task.source, self._scale)
        self.init_arguments: tuple[Any, ...] = tuple(self._called("get_init_inputs"))
        namespaces = [
            self._namespace,
            *(execute_reference(task, source, self._scale) for source in task.alternatives),
        ]
        self._models = [self._construct(namespace) for namespace in namespaces]
        self._model = self._models[0]
        # Made anew: a copy of a model may go on using parts of the original.
        self._models64 = [self._construct(namespace).double() for namespace in namespaces]
        self._parameter_draw = ParameterDraw([*self._models, *self._models64])
        #: How far the reference is from its float64 run.
        self.errors = ReferenceErrors(self)

        sample = self._official(seed=0)
        with torch.no_grad():
            outputs = _flatten(self._run(self._model, sample))
        tensors = [value for value in sample if isinstance(value, torch.Tensor)]
        slots, self.input_bytes = lay_out([(tuple(t.shape), t.dtype) for t in tensors])
        remaining = iter(slots)
        self.arguments = tuple(
            Argument(next(remaining)) if isinstance(v, torch.Tensor) else Argument(None, v) for v in sample
        )
        self.outputs, self.output_bytes = lay_out([(tuple(t.shape), t.dtype) for t in outputs])
        self.parameters, self.parameter_bytes = self._parameters()
        self.domains = domains_of(task, tensors)
        self.kinds = kinds_for(self.domains)
        self._needs_official = any(
            domain.fixed or not tensor.is_floating_point()
            for tensor, domain in zip(tensors, self.domains, strict=True)
        )
        self._settle_parameters()
        self.errors.measure()
        # Not the model itself, which might keep the tensors without memory that it is counted with.
        work = count_work(self._construct(self._namespace), sample, task.flops_per_element)
        self.roofline = roofline_of(work, ceilings, resident_bytes=min(self.output_bytes, facts.l2_bytes))
        del sample, tensors, outputs
        self.copy_us = time_copy(self.outputs, self.output_bytes, arenas, self._device)
        self.timing = self._time_reference()
        self.roofline = self.roofline.at_most(self.timing.median_us)

    @property
    def forms(self) -> range:
        """Numbers of the functions whose values are accepted; 0 is the reference itself."""
        return range(len(self._models))

    @property
    def call_bytes(self) -> int:
        """Memory that the inputs and outputs of one call take."""
        return self.input_bytes + self.output_bytes

    def briefing(self, isolation: str) -> Briefing:
        """What a prompt says of the task on this device."""
        return Briefing(
            device=self._facts,
            roofline=self.roofline,
            reference=self.timing,
            inputs=tuple(_facts_of(a.slot) for a in self.arguments if a.slot is not None),
            outputs=tuple(_facts_of(slot) for slot in self.outputs),
            isolation=isolation,
            sizes=self.task.sizes_at(self._scale),
        )

    def new_input_set(self) -> InputSet:
        """An input set in an arena of its own."""
        return InputSet(self.arenas.acquire(self.input_bytes), self.arguments, self.domains)

    def write_inputs(self, inputs: InputSet, kind: InputKind, seed: int) -> None:
        """Give an input set fresh contents of a kind."""
        wants_official = self._needs_official or kind in BUILT_ON_OFFICIAL
        official = None
        if wants_official:
            official = [v for v in self._official(seed) if isinstance(v, torch.Tensor)]
        inputs.write(kind, seed, official)

    def parameter_values(self) -> dict[str, torch.Tensor]:
        """The reference's parameters and buffers by name."""
        return dict(self._model.state_dict())

    def draw_parameters(self, seed: int) -> dict[str, torch.Tensor]:
        """Give the reference, its accepted forms and the oracle parameters of their own for an evaluation.

        Args:
            seed: Seed of the evaluation's parameters.

        Returns:
            The drawn parameters and buffers by name.
        """
        if self._parameter_draw.liberty is not Liberty.NONE:
            self._parameter_draw.draw(seed)
        return self.parameter_values()

    def tolerance(self, kind: InputKind) -> Tolerance:
        """What outputs for a kind of inputs are allowed."""
        return tolerance_on(kind, self.task.tolerance)

    @torch.no_grad()
    def expected(self, inputs: InputSet, form: int = 0) -> Expected:
        """Run the reference, or an accepted form of it, at its own precision."""
        outputs = tuple(_flatten(self._run(self._models[form], inputs.arguments())))
        return Expected(outputs, tuple(output_scale(output) for output in outputs))

    @torch.no_grad()
    def against_oracle(
        self,
        actual: Sequence[torch.Tensor],
        kind: InputKind,
        inputs: InputSet,
        expected: Expected,
        reference_errors: tuple[ErrorSize, ...] | None,
        form: int = 0,
    ) -> list[Agreement]:
        """Compare outputs with a float64 run of the reference, in slices where its rows are independent.

        Returns:
            One agreement for each output.
        """
        errors = reference_errors or (ErrorSize(),) * len(actual)
        comparisons = [
            Comparison(
                tensor.dtype,
                scale=scale,
                tolerance=self.tolerance(kind),
                reference_error=error,
                input_kind=kind.value,
                shape=tuple(tensor.shape),
            )
            for tensor, scale, error in zip(actual, expected.scales, errors, strict=True)
        ]
        for rows, oracle in self._oracle_slices(inputs.arguments(), self._models64[form]):
            for comparison, tensor, exact in zip(comparisons, actual, oracle, strict=True):
                comparison.add(tensor if rows is None else tensor[rows], exact)
        return [comparison.agreement() for comparison in comparisons]

    def oracle_outputs(self, arguments: list[Any], form: int) -> Iterator[list[torch.Tensor]]:
        """A float64 run of the reference, or of an accepted form of it, slice by slice."""
        for _, outputs in self._oracle_slices(arguments, self._models64[form]):
            yield outputs

    def _settle_parameters(self) -> None:
        """Find out how far parameters may be drawn from constructed ones without spoiling the function."""
        if self._parameter_draw.liberty is Liberty.NONE:
            return
        inputs = self.new_input_set()
        try:
            self.write_inputs(inputs, InputKind.OFFICIAL, seed=0)
            usual = self._nonfinite(inputs)
            self._parameter_draw.settle(lambda: self._nonfinite(inputs) <= usual < math.inf)
        finally:
            self.arenas.release(inputs.arena)

    def _nonfinite(self, inputs: InputSet) -> float:
        """NaN and Inf among the outputs for official inputs; infinite where a form disagrees with its oracle."""
        count = 0
        try:
            for form in self.forms:
                expected = self.expected(inputs, form)
                errors = self.errors.at(InputKind.OFFICIAL, inputs, expected, form)
                if errors is None:
                    return math.inf
                count += sum(int((~output.isfinite()).sum()) for output in expected.outputs)
        except TaskError:
            return math.inf
        return count

    def _oracle_slices(
        self, arguments: list[Any], model: torch.nn.Module
    ) -> Iterator[tuple[slice | None, list[torch.Tensor]]]:
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        largest = max((t.numel() for t in tensors), default=0)
        limit = _CHUNK_ELEMENTS[self._device.type]
        if not self.task.rows_independent or largest <= limit:
            yield None, _flatten(self._run(model, [_doubled(a) for a in arguments]))
            return
        rows = tensors[0].shape[0]
        step = max(1, rows * limit // largest)
        for start in range(0, rows, step):
            part = slice(start, min(start + step, rows))
            sliced = [_doubled(a[part]) if isinstance(a, torch.Tensor) else a for a in arguments]
            yield part, _flatten(self._run(model, sliced))

    def _run(self, model: torch.nn.Module, arguments: Sequence[Any]) -> Any:
        try:
            return model(*arguments)
        except torch.OutOfMemoryError:
            raise
        except TASKS_OWN as error:
            raise TaskError(
                f"The reference of task {self.task.id!r} fails: {type(error).__name__}: {error}"
            ) from error

    def _construct(self, namespace: dict[str, Any]) -> torch.nn.Module:
        try:
            with torch.random.fork_rng(devices=[self._device] if self._facts.is_cuda else []):
                torch.manual_seed(_WEIGHT_SEED)
                with torch.device(self._device):
                    model = namespace["Model"](*self.init_arguments)
            return model.to(self._device)
        except TASKS_OWN as error:
            raise TaskError(
                f"The reference of task {self.task.id!r} cannot be constructed: {type(error).__name__}: {error}"
            ) from error

    def _official(self, seed: int) -> list[Any]:
        return official_inputs(lambda: self._called("get_inputs"), self._device, seed)

    def _called(self, name: str) -> Sequence[Any]:
        try:
            made = self._namespace[name]()
        except torch.OutOfMemoryError:
            raise
        except TASKS_OWN as error:
            raise TaskError(
                f"{name}() of task {self.task.id!r} fails: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(made, (list, tuple)):
            raise TaskError(
                f"{name}() of task {self.task.id!r} must return a list of arguments, not {type(made).__name__}: "
                f"{'return [x]' if name == 'get_inputs' else 'return [] where there are none'}."
            )
        return made

    def _parameters(self) -> tuple[tuple[Parameter, ...], int]:
        state = self._model.state_dict()
        if not state:
            return (), 0
        slots, size_bytes = lay_out([(tuple(t.shape), t.dtype) for t in state.values()])
        return tuple(Parameter(name, slot) for name, slot in zip(state, slots, strict=True)), size_bytes

    @torch.no_grad()
    def _time_reference(self) -> Timing:
        inputs = self.new_input_set()
        try:
            self.write_inputs(inputs, InputKind.OFFICIAL, seed=1)
            arguments = inputs.arguments()
            return time_reference(lambda: self._run(self._model, arguments), self._device)
        finally:
            self.arenas.release(inputs.arena)


def _flatten(result: Any) -> list[torch.Tensor]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _doubled(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _facts_of(slot: TensorSlot) -> TensorFacts:
    return TensorFacts(slot.shape, slot.dtype)
