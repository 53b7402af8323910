"""What an evaluation at the official sizes needs and does, counted on tensors without memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from gym_kernel.evaluator.reference_source import execute_reference
from gym_kernel.linter.live_bytes import LiveBytes
from gym_kernel.linter.observer import ForwardWatch
from gym_kernel.tasks.task import Task, TaskScale

__all__ = ["OfficialCount", "count_official"]

_GIB = 1 << 30


@dataclass(frozen=True)
class OfficialCount:
    """A task at its official sizes.

    Attributes:
        input_bytes: One set of inputs.
        output_bytes: One set of outputs.
        parameter_bytes: Parameters and buffers.
        reference_bytes: Most that the reference holds at once beside its inputs and outputs.
        oracle_bytes: The same for its float64 run, with the widened inputs and the outputs; 0 where rows are
            independent, as it is then done in slices.
        output_elements: Elements of all outputs.
        product_flops: FLOPs of its matrix products and convolutions.
        elementwise_flops: An upper bound of its other operations.
    """

    input_bytes: int
    output_bytes: int
    parameter_bytes: int
    reference_bytes: int
    oracle_bytes: int
    output_elements: int
    product_flops: float
    elementwise_flops: float

    @property
    def memory_gib(self) -> float:
        """Two input sets, an output and the reference's, parameters in both precisions, and the larger of its runs.

        A judge holds more for moments, a copy of outputs of up to 1 GiB among it, and each process some 0.6 GB for
        its CUDA context.
        """
        steady = 2 * self.input_bytes + 2 * self.output_bytes + 4 * self.parameter_bytes
        return (steady + max(self.reference_bytes, self.oracle_bytes)) / _GIB

    @property
    def moved_bytes(self) -> int:
        """Inputs, outputs and parameters once."""
        return self.input_bytes + self.output_bytes + self.parameter_bytes


def count_official(task: Task) -> OfficialCount:
    """Count what a task needs and does, without allocating or computing anything.

    Args:
        task: A task at one shape, whose reference runs.

    Raises:
        Exception: Whatever the reference raises on fake tensors, for instance where its shapes depend on data.
    """
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        namespace = execute_reference(task, task.source, TaskScale.OFFICIAL)
        model = namespace["Model"](*namespace["get_init_inputs"]())
        arguments = list(namespace["get_inputs"]())
        weights = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        peak, outputs = _peak(model, weights, arguments)
        products, elementwise = _flops(model, weights, arguments)
        return OfficialCount(
            input_bytes=_size(arguments),
            output_bytes=_size(outputs),
            parameter_bytes=_size(weights.values()),
            reference_bytes=max(peak - _size(outputs), 0),
            oracle_bytes=0 if task.rows_independent else _oracle_bytes(model, weights, arguments),
            output_elements=sum(output.numel() for output in outputs),
            product_flops=products,
            elementwise_flops=elementwise,
        )


def _peak(
    model: torch.nn.Module, weights: dict[str, torch.Tensor], arguments: list[Any]
) -> tuple[int, list[torch.Tensor]]:
    """Most bytes held at once that the run itself allocates, and its outputs."""
    with LiveBytes((*weights.values(), *_tensors(arguments))) as live:
        outputs = torch.func.functional_call(model, weights, tuple(arguments))
    return live.peak, _tensors(outputs)


def _oracle_bytes(model: torch.nn.Module, weights: dict[str, torch.Tensor], arguments: list[Any]) -> int:
    wide = [_doubled(argument) for argument in arguments]
    # Fused attention knows no float64.
    with sdpa_kernel(SDPBackend.MATH):
        peak, _ = _peak(model, {name: _doubled(value) for name, value in weights.items()}, wide)
    return peak + _size(wide)


def _flops(
    model: torch.nn.Module, weights: dict[str, torch.Tensor], arguments: list[Any]
) -> tuple[float, float]:
    """FLOPs of products and convolutions, and an upper bound of the rest."""
    counter = FlopCounterMode(display=False)
    # Fused attention has no formula on every device; its plain form is made of products that do.
    with sdpa_kernel(SDPBackend.MATH), ForwardWatch() as watch, counter:
        torch.func.functional_call(model, weights, tuple(arguments))
    return float(counter.get_total_flops()), watch.elementwise_flops


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _size(tree: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in _tensors(list(tree)))


def _doubled(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
