"""Rules about the roofline: its bytes and FLOPs against counts of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from gym_kernel.linter.observer import ForwardWatch
from gym_kernel.linter.official_count import OfficialCount
from gym_kernel.linter.report import Finding, Rule, Severity
from gym_kernel.linter.workbench import Sample, Workbench, tensors_of
from gym_kernel.tasks.task import Task

__all__ = ["check_bytes", "check_elementwise_flops", "check_product_flops", "claimed_products"]

_MOSTLY_ZERO = 0.25


def check_bytes(workbench: Workbench, official: Sample) -> Iterator[Finding]:
    """The roofline moves every input, parameter, buffer and output once."""
    weights = workbench.bench.parameter_values().values()
    counted = _size(tensors_of(official.inputs)) + _size(weights) + _size(official.expected.outputs)
    claimed = workbench.bench.roofline.work.bytes
    if claimed != counted:
        yield Finding(
            Rule.ROOFLINE_BYTES,
            Severity.ERROR,
            f"The roofline counts {claimed:,} bytes, but inputs, parameters and outputs hold {counted:,}. Return no "
            "expanded or shared tensors, register constants as persistent buffers and tie no parameters.",
        )


def check_product_flops(
    workbench: Workbench, official: Sample, count: OfficialCount | None
) -> Iterator[Finding]:
    """The roofline's FLOPs of products are those that torch's own counter sees, and none multiplies zeros.

    Args:
        workbench: The task.
        official: A sample of official inputs.
        count: The same task counted at its official sizes, where that could be done.
    """
    claimed = claimed_products(workbench, official)
    if workbench.bench.device_id == "cpu":
        counted, zeros = _run_products(workbench, official)
    elif count is not None:
        # At official sizes the plain form of a fused attention may not fit into memory.
        counted, zeros = count.product_flops, 0.0
    else:
        return
    if abs(claimed - counted) > 1e-6 * max(counted, 1.0):
        yield Finding(
            Rule.ROOFLINE_FLOPS,
            Severity.ERROR,
            f"The roofline counts {claimed:,.0f} FLOPs of products, torch's FlopCounterMode {counted:,.0f}. Let the "
            "products not depend on the data.",
        )
    if zeros > _MOSTLY_ZERO:
        yield Finding(
            Rule.ROOFLINE_FLOPS,
            Severity.WARNING,
            f"A matrix product has an operand of which {zeros:.0%} is exactly zero, for instance behind a mask. A "
            "kernel that skips it does fewer FLOPs than the roofline counts, which is then no floor.",
        )


def claimed_products(workbench: Workbench, official: Sample) -> float:
    """FLOPs of products and convolutions in the roofline."""
    elements = sum(output.numel() for output in official.expected.outputs)
    return workbench.bench.roofline.work.total_flops - workbench.task.flops_per_element * elements


def check_elementwise_flops(task: Task, count: OfficialCount) -> Iterator[Finding]:
    """What the task declares beside its products is at most what the reference does at the official sizes."""
    declared = task.flops_per_element * count.output_elements
    if declared > count.elementwise_flops:
        yield Finding(
            Rule.ROOFLINE_FLOPS,
            Severity.ERROR,
            f"At the official sizes flops_per_element={task.flops_per_element:g} stands for {declared:,.0f} "
            f"operations, but the reference does at most {count.elementwise_flops:,.0f}, so that the roofline is no "
            f"floor. Lower it to {count.elementwise_flops / max(count.output_elements, 1):.3g} or less.",
        )


def _run_products(workbench: Workbench, official: Sample) -> tuple[float, float]:
    """FLOPs of the products in one run of the reference, and the largest share of zeros in an operand."""
    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), ForwardWatch(look_for_zeros=True) as watch, counter:
        workbench.bench.expected(official.inputs)
    return float(counter.get_total_flops()), watch.zero_share


def _size(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
