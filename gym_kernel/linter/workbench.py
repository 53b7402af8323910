"""A device for linting, and a task's reference on it with hidden inputs to try things on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache

import torch

from gym_kernel.errors import GymKernelError, TaskError
from gym_kernel.evaluator.arena_pool import ArenaPool
from gym_kernel.evaluator.briefing import DeviceFacts
from gym_kernel.evaluator.cache import cache_dir
from gym_kernel.evaluator.ceilings import cached
from gym_kernel.evaluator.device_choice import resolve_device
from gym_kernel.evaluator.device_facts import lock_name, read_device_facts
from gym_kernel.evaluator.error_bound import ErrorSize
from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.evaluator.input_set import InputSet
from gym_kernel.evaluator.lane import Lane
from gym_kernel.evaluator.numerics import compare
from gym_kernel.evaluator.own_precision import compute_as_written
from gym_kernel.evaluator.reference_bench import Expected, ReferenceBench
from gym_kernel.evaluator.roofline import Ceilings
from gym_kernel.linter.contract import check_contract
from gym_kernel.tasks.task import Task, TaskScale

__all__ = ["LintDevice", "Sample", "Workbench", "lint_device", "swapped", "tensors_of"]

_SEED, _OTHER_SEED = 11, 1_000_003


@dataclass(frozen=True)
class LintDevice:
    """A device that tasks are linted on; one for the process, so that its ceilings are measured once.

    Attributes:
        facts: The device.
        ceilings: What it can do.
        arenas: Where shared memory comes from.
        lane: The judge's lane of the device.
    """

    facts: DeviceFacts
    ceilings: Ceilings
    arenas: ArenaPool
    lane: Lane

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep judges off a GPU meanwhile, as their clocks and memory would suffer; on a CPU use one thread."""
        if self.facts.is_cuda:
            with self.lane.hold(), torch.cuda.device(torch.device(self.facts.id)):
                try:
                    yield
                finally:
                    torch.cuda.empty_cache()
            return
        threads = torch.get_num_threads()
        # Small tensors gain nothing from more, and on a busy machine threads wait long for each other.
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def lint_device(name: str) -> LintDevice:
    """The device of a name.

    Args:
        name: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.

    Raises:
        ConfigurationError: The name is none of these.
        DeviceUnavailable: The device is not on this machine.
    """
    return _lint_device(resolve_device(name))


@cache
def _lint_device(device_id: str) -> LintDevice:
    # As the judge does: this is another process.
    compute_as_written()
    device = torch.device(device_id)
    facts = read_device_facts(device)
    lane = Lane(cache_dir() / "locks" / f"{lock_name(device)}.lock")
    # Measuring on a GPU that somebody else uses would give ceilings that are too low, and keep them.
    with lane.hold() if facts.is_cuda else nullcontext():
        ceilings = cached(facts)
    return LintDevice(facts, ceilings, ArenaPool(device, keep_bytes=64 << 20), lane)


@dataclass(frozen=True)
class Sample:
    """Inputs of one kind, and what the reference makes of them.

    Attributes:
        kind: What the values look like.
        inputs: The inputs.
        expected: The reference's outputs.
        other_inputs: Inputs of the same kind from another seed.
        other: The reference's outputs for those.
        errors: The reference's own scaled error against float64, by output; ``None`` where the kind is not fit
            to judge by.
    """

    kind: InputKind
    inputs: InputSet
    expected: Expected
    other_inputs: InputSet
    other: Expected
    errors: tuple[ErrorSize, ...] | None


@dataclass
class Workbench:
    """A task's reference on a device.

    Args:
        bench: The judge's own bench of the task.
    """

    bench: ReferenceBench
    _inputs: InputSet = field(init=False)
    _others: InputSet = field(init=False)

    @classmethod
    @contextmanager
    def open(cls, task: Task, device: LintDevice) -> Iterator[Workbench]:
        """Set a task up, at the sizes for the device.

        Raises:
            TaskError: The reference does not run.
        """
        with ExitStack() as stack:
            self = cls(_set_up(task, device))
            self._inputs, self._others = (self.bench.new_input_set() for _ in range(2))
            for inputs in (self._inputs, self._others):
                stack.callback(device.arenas.release, inputs.arena)
            yield self

    @property
    def task(self) -> Task:
        """The task, at one shape."""
        return self.bench.task

    def sample(self, kind: InputKind) -> Sample:
        """Draw inputs of a kind, twice. It holds until the next one is drawn.

        Raises:
            TaskError: The reference fails on them, or returns other shapes than before.
        """
        bench = self.bench
        bench.write_inputs(self._inputs, kind, _SEED)
        bench.write_inputs(self._others, kind, _OTHER_SEED)
        expected, other = bench.expected(self._inputs), bench.expected(self._others)
        self._check_shapes(kind, expected)
        self._check_shapes(kind, other)
        errors = bench.errors.usual(kind, self._inputs.variant)
        return Sample(kind, self._inputs, expected, self._others, other, errors)

    def _check_shapes(self, kind: InputKind, expected: Expected) -> None:
        first = [slot.shape for slot in self.bench.outputs]
        shapes = [tuple(output.shape) for output in expected.outputs]
        if shapes != first:
            raise TaskError(
                f"The shapes of the outputs depend on the data: {shapes} on {kind.value} inputs, {first} before. Pad "
                "them to one shape."
            )

    def agrees(self, sample: Sample, output: int, actual: torch.Tensor) -> bool:
        """Whether the judge would take ``actual`` for an output of the reference.

        Args:
            sample: Inputs that are fit to judge by.
            output: Position of the output.
            actual: A candidate's values.
        """
        expected = sample.expected.outputs[output]
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            return False
        error = sample.errors[output] if sample.errors else ErrorSize()
        return compare(
            actual,
            expected,
            tolerance=self.bench.tolerance(sample.kind),
            reference_error=error,
            scale=sample.expected.scales[output],
        ).passed

    def same(self, sample: Sample, outputs: tuple[torch.Tensor, ...]) -> bool:
        """Whether all of ``outputs`` agree."""
        return all(self.agrees(sample, position, output) for position, output in enumerate(outputs))

    @contextmanager
    def replaced(self, sample: Sample, values: dict[int, torch.Tensor]) -> Iterator[None]:
        """Put other values in the place of some tensor arguments, by position, for a while."""
        with swapped([(t, values[i]) for i, t in enumerate(tensors_of(sample.inputs)) if i in values]):
            yield


def _set_up(task: Task, device: LintDevice) -> ReferenceBench:
    scale = TaskScale.OFFICIAL if device.facts.is_cuda else TaskScale.SMALL
    try:
        check_contract(task, scale, device.facts.id)
        return ReferenceBench(task, device.facts, device.ceilings, device.arenas)
    except (GymKernelError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        # The judge does not expect get_inputs and get_init_inputs to fail, and a task's author may let them.
        raise TaskError(f"The task cannot be set up: {type(error).__name__}: {error}") from error


def tensors_of(inputs: InputSet) -> list[torch.Tensor]:
    """The tensor arguments of a set, in order."""
    return [value for value in inputs.arguments() if isinstance(value, torch.Tensor)]


@contextmanager
def swapped(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Iterator[None]:
    """Overwrite the first tensor of each pair with the second for a while."""
    kept = [(tensor, tensor.clone()) for tensor, _ in pairs]
    try:
        _overwrite(pairs)
        yield
    finally:
        _overwrite(kept)


@torch.no_grad()
def _overwrite(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
    for tensor, value in pairs:
        tensor.copy_(value)
