"""Rules about inputs and parameters: where they lie, how they are laid out, and that the output depends on them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from gym_kernel.errors import TaskError
from gym_kernel.evaluator.input_kinds import official_inputs
from gym_kernel.evaluator.reference_source import execute_reference
from gym_kernel.linter.report import Finding, Rule, Severity
from gym_kernel.linter.workbench import Sample, Workbench, swapped, tensors_of
from gym_kernel.tasks.task import TaskScale

__all__ = ["Dependence", "check_domains", "check_layout", "check_not_empty"]

_PERTURBATION_SEED = 77


def check_not_empty(official: Sample) -> Iterator[Finding]:
    """Inputs and outputs have elements."""
    named = [
        *((f"Input {i}", tensor) for i, tensor in enumerate(tensors_of(official.inputs))),
        *((f"Output {i}", tensor) for i, tensor in enumerate(official.expected.outputs)),
    ]
    for name, tensor in named:
        if not tensor.numel():
            yield Finding(
                Rule.SIZES,
                Severity.ERROR,
                f"{name} of shape {tuple(tensor.shape)} has no elements, so that nothing is computed. Choose sizes of "
                "1 or more in get_inputs.",
            )


def check_domains(workbench: Workbench, official: Sample) -> Iterator[Finding]:
    """Official inputs lie in the declared domains, and some input is not fixed."""
    domains = workbench.bench.domains
    tensors = tensors_of(official.inputs)
    if not any(t.is_floating_point() and not d.fixed for t, d in zip(tensors, domains, strict=True)):
        yield Finding(
            Rule.DOMAIN,
            Severity.ERROR,
            "No floating-point input may vary, so that submissions are tried on official inputs alone. Declare 'any' "
            "or [low, high] for one of them.",
        )
    for position, (tensor, domain) in enumerate(zip(tensors, domains, strict=True)):
        if domain.fixed:
            continue
        if not tensor.is_floating_point():
            yield Finding(
                Rule.DOMAIN,
                Severity.WARNING,
                f"Input {position} is {_dtype(tensor)}, which is never varied. Declare it as 'fixed'.",
            )
            continue
        low, high = float(tensor.amin()), float(tensor.amax())
        if not (domain.low <= low and high <= domain.high):
            yield Finding(
                Rule.DOMAIN,
                Severity.ERROR,
                f"Official values of input {position} reach from {low:.4g} to {high:.4g}, but its domain is "
                f"[{domain.low:g}, {domain.high:g}]. Widen the domain or change get_inputs.",
            )


def check_layout(workbench: Workbench, official: Sample) -> Iterator[Finding]:
    """Inputs, parameters and outputs are contiguous, as a submission gets and returns them."""
    scale = TaskScale.OFFICIAL if workbench.bench.device_id != "cpu" else TaskScale.SMALL
    namespace = execute_reference(workbench.task, workbench.task.source, scale)
    made = official_inputs(namespace["get_inputs"], workbench.bench.device_id, seed=0)
    tensors = [value for value in made if isinstance(value, torch.Tensor)]
    named = [
        *((f"Input {i}", tensor) for i, tensor in enumerate(tensors)),
        *((f"Parameter {name!r}", tensor) for name, tensor in workbench.bench.parameter_values().items()),
        *((f"Output {i}", tensor) for i, tensor in enumerate(official.expected.outputs)),
    ]
    for name, tensor in named:
        if not tensor.is_contiguous():
            yield Finding(
                Rule.LAYOUT,
                Severity.ERROR,
                f"{name} has the strides {tuple(tensor.stride())} for the shape {tuple(tensor.shape)}. Make it "
                "contiguous with .contiguous(); submissions see contiguous tensors.",
            )


class Dependence:
    """What the output has not been seen to depend on yet, over one kind of inputs after another.

    Args:
        workbench: The task.
    """

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._inputs = list(range(sum(a.slot is not None for a in workbench.bench.arguments)))
        self._unvaried: set[int] = set()
        self._weights = [
            (name, change)
            for name, tensor in workbench.bench.parameter_values().items()
            for change in _changes(tensor)
        ]

    def face(self, sample: Sample) -> None:
        """Change each of them alone, on a sample."""
        self._inputs = [position for position in self._inputs if not self._depends_on_input(sample, position)]
        self._weights = [pair for pair in self._weights if not self._depends_on_weight(sample, *pair)]

    def findings(self) -> Iterator[Finding]:
        """One for each that no kind of inputs has shown."""
        for position in self._inputs:
            yield self._input_finding(position)
        reported: set[str] = set()
        for name, change in self._weights:
            if name not in reported:
                yield _weight_finding(name, change)
            reported.add(name)

    def _depends_on_input(self, sample: Sample, position: int) -> bool:
        tensor = tensors_of(sample.inputs)[position]
        value = _another(tensor, tensors_of(sample.other_inputs)[position])
        if value is None:
            self._unvaried.add(position)
            return False
        self._unvaried.discard(position)
        with self._workbench.replaced(sample, {position: value}):
            return not self._unchanged(sample)

    def _depends_on_weight(self, sample: Sample, name: str, change: str) -> bool:
        tensor = self._workbench.bench.parameter_values()[name]
        with swapped([(tensor, _changed(tensor, change))]):
            return not self._unchanged(sample)

    def _unchanged(self, sample: Sample) -> bool:
        try:
            return self._workbench.same(sample, self._workbench.bench.expected(sample.inputs).outputs)
        except TaskError:
            # It minds.
            return False

    def _input_finding(self, position: int) -> Finding:
        if position in self._unvaried:
            return Finding(
                Rule.INPUT_USED,
                Severity.WARNING,
                f"Input {position} holds the same value everywhere and always, so nothing shows that it is used. "
                "Draw it at random in get_inputs, or leave it out.",
            )
        return Finding(
            Rule.INPUT_USED,
            Severity.ERROR,
            f"The output stays the same when input {position} is drawn anew. Use it in forward, or leave it out.",
        )


_ZEROS, _ONES, _PERTURBED = "zeros", "ones", "perturbed"


def _changes(tensor: torch.Tensor) -> tuple[str, ...]:
    return (_PERTURBED, _ZEROS, _ONES) if tensor.is_floating_point() else (_PERTURBED,)


def _changed(tensor: torch.Tensor, change: str) -> torch.Tensor:
    if change == _ZEROS:
        return torch.zeros_like(tensor)
    if change == _ONES:
        return torch.ones_like(tensor)
    if tensor.is_floating_point():
        generator = torch.Generator(tensor.device).manual_seed(_PERTURBATION_SEED)
        noise = torch.empty_like(tensor).normal_(generator=generator)
        return tensor + noise * (float(tensor.double().square().mean().sqrt()) or 1.0)
    flipped = _another(tensor, tensor)
    return tensor + 1 if flipped is None else flipped


def _another(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor | None:
    """Values that differ from a tensor's but are of its kind, or ``None``."""
    candidates = (other, tensor.flip(tuple(range(tensor.dim()))))
    differing = next((value for value in candidates if not torch.equal(value, tensor)), None)
    if differing is None and tensor.dtype == torch.bool:
        return tensor.logical_not()
    return differing


def _weight_finding(name: str, change: str) -> Finding:
    if change == _PERTURBED:
        message = (
            f"The output stays the same when parameter {name!r} changes. Use it in forward, or leave it out."
        )
    else:
        message = (
            f"The output stays the same when parameter {name!r} is all {change}, so that a kernel may leave it out. "
            "Initialise it with random values that matter."
        )
    return Finding(Rule.PARAMETER_USED, Severity.ERROR, message)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
