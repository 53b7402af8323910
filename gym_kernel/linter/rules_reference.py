"""Rules about the reference: what it computes is a function, and float64 can be its oracle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.evaluator.numerics import compare
from gym_kernel.linter.observer import ForwardWatch
from gym_kernel.linter.report import Finding, Rule, Severity
from gym_kernel.linter.workbench import Sample, Workbench, tensors_of

__all__ = [
    "check_determinism",
    "check_finite",
    "check_kinds",
    "check_oracle_precision",
    "check_purity",
    "check_rows",
]

_REPEATED_SHARE = 0.25
# Many sound functions have nothing to say of values in the ten thousands: a softmax, a product of matrices in float16.
_DISPENSABLE = frozenset({InputKind.HUGE})


def check_purity(workbench: Workbench, official: Sample) -> Iterator[Finding]:
    """The reference leaves its inputs and parameters alone and returns tensors of its own."""
    bench = workbench.bench
    bench.write_inputs(official.inputs, InputKind.OFFICIAL, seed=5)
    tensors = tensors_of(official.inputs)
    weights = bench.parameter_values()
    before = [tensor.clone() for tensor in (*tensors, *weights.values())]
    outputs = bench.expected(official.inputs).outputs
    names = [*(f"input {i}" for i in range(len(tensors))), *(f"the buffer {name!r}" for name in weights)]
    for name, old, new in zip(names, before, (*tensors, *weights.values()), strict=True):
        if not _identical(old, new):
            yield Finding(
                Rule.REFERENCE_PURE,
                Severity.ERROR,
                f"forward changes {name} in place. Compute into a new tensor instead.",
            )
    for position, output in enumerate(outputs):
        for i, tensor in enumerate(tensors):
            if _shares_memory(output, tensor):
                yield Finding(
                    Rule.REFERENCE_PURE,
                    Severity.ERROR,
                    f"Output {position} is a view of input {i}. Return a tensor of its own, for instance a "
                    ".clone().",
                )


def check_determinism(workbench: Workbench, official: Sample) -> Iterator[Finding]:
    """Two runs on the same inputs agree far within the tolerance."""
    again = workbench.bench.expected(official.inputs).outputs
    for position, (first, second) in enumerate(zip(official.expected.outputs, again, strict=True)):
        agreement = compare(
            second,
            first,
            tolerance=workbench.task.tolerance,
            scale=official.expected.scales[position],
        )
        if not agreement.passed or agreement.max_rel_error > _REPEATED_SHARE * agreement.tolerance:
            yield Finding(
                Rule.DETERMINISTIC,
                Severity.ERROR,
                f"Two runs on the same inputs give output {position} with a relative difference of "
                f"{agreement.max_rel_error:.1e}. Take dropout, random numbers and state out of forward.",
            )


def check_finite(official: Sample) -> Iterator[Finding]:
    """Official outputs hold no NaN and no Inf."""
    for position, output in enumerate(official.expected.outputs):
        count = int((~output.isfinite()).sum()) if output.is_floating_point() else 0
        if count:
            yield Finding(
                Rule.FINITE,
                Severity.ERROR,
                f"Output {position} holds {count:,} NaN or Inf values on official inputs. Let get_inputs stay where "
                "the function is defined.",
            )


def check_oracle_precision(workbench: Workbench, official: Sample) -> Iterator[Finding]:
    """With float64 inputs and parameters everything stays float64."""
    expected = official.expected
    with ForwardWatch() as watch:
        workbench.bench.against_oracle(
            expected.outputs, official.kind, official.inputs, expected, official.errors
        )
    inexact = [
        position
        for position, (output, dtype) in enumerate(zip(expected.outputs, watch.output_dtypes, strict=True))
        if output.is_floating_point() and dtype != torch.float64
    ]
    if inexact or watch.narrowed:
        where = (
            f"returns output {inexact[0]} in a lower precision"
            if inexact
            else "converts a tensor to a lower one"
        )
        yield Finding(
            Rule.ORACLE_PRECISION,
            Severity.ERROR,
            f"With float64 inputs and parameters forward {where}, so that the float64 oracle is none. Write "
            "`x if x.dtype == torch.float64 else x.float()` for an upcast and `.to(x.dtype)` for the result.",
        )


def check_rows(workbench: Workbench, official: Sample) -> Iterator[Finding]:
    """Rows are independent where the task says so: others may change and a row stays the same."""
    if not workbench.task.rows_independent:
        return
    tensors, outputs = tensors_of(official.inputs), official.expected.outputs
    sizes = {tensor.shape[0] if tensor.dim() else 0 for tensor in (*tensors, *outputs)}
    if len(sizes) > 1:
        yield _rows_finding(f"dimension 0 of its inputs and outputs has the sizes {sorted(sizes)}")
        return
    middle = sizes.pop() // 2
    with workbench.replaced(official, _changed_from(middle, tensors, tensors_of(official.other_inputs))):
        changed = workbench.bench.expected(official.inputs).outputs
    for new, old in zip(changed, outputs, strict=True):
        new[middle:] = old[middle:]
    if not workbench.same(official, changed):
        yield _rows_finding("the first rows of the output change with the last rows of the inputs")


def check_kinds(workbench: Workbench, dropped: Sequence[InputKind]) -> Iterator[Finding]:
    """The reference agrees with float64 on official inputs and on most other kinds."""
    kinds = [kind for kind in workbench.bench.kinds if kind not in _DISPENSABLE]
    dropped = [kind for kind in dropped if kind not in _DISPENSABLE]
    names = ", ".join(kind.value for kind in dropped)
    if InputKind.OFFICIAL in dropped:
        yield Finding(
            Rule.WELL_POSED,
            Severity.ERROR,
            "On official inputs the reference disagrees with its own float64 computation. Accumulate in float32 at "
            "least, and choose inputs at which the function is well-conditioned.",
        )
    elif 2 * len(dropped) > len(kinds):
        yield Finding(
            Rule.WELL_POSED,
            Severity.ERROR,
            f"Only {len(kinds) - len(dropped)} of {len(kinds)} kinds of inputs can be judged; the reference is too far "
            f"from float64 on {names}. Accumulate in float32 at least, or narrow the domains.",
        )
    elif 4 * len(dropped) > len(kinds):
        yield Finding(
            Rule.WELL_POSED,
            Severity.WARNING,
            f"The reference is too far from float64 to judge by on {names}. Narrow the domains, or accumulate in "
            "float32 at least.",
        )
    for form in list(workbench.bench.forms)[1:]:
        yield from _check_form(workbench, form)


def _check_form(workbench: Workbench, form: int) -> Iterator[Finding]:
    sample = workbench.sample(InputKind.OFFICIAL)
    bench = workbench.bench
    expected = bench.expected(sample.inputs, form)
    if bench.errors.at(InputKind.OFFICIAL, sample.inputs, expected, form) is None:
        yield Finding(
            Rule.WELL_POSED,
            Severity.ERROR,
            f"On official inputs alternative {form} disagrees with its own float64 computation. Accumulate in float32 "
            "at least.",
        )


def _changed_from(
    middle: int, tensors: Sequence[torch.Tensor], others: Sequence[torch.Tensor]
) -> dict[int, torch.Tensor]:
    return {
        position: torch.cat((tensor[:middle], other[middle:]))
        for position, (tensor, other) in enumerate(zip(tensors, others, strict=True))
    }


def _rows_finding(why: str) -> Finding:
    return Finding(
        Rule.ROWS_INDEPENDENT,
        Severity.ERROR,
        f"The task says rows_independent, but {why}. Take the entry out.",
    )


def _identical(first: torch.Tensor, second: torch.Tensor) -> bool:
    # Bit by bit: a NaN that stays is no change.
    return torch.equal(*(t.reshape(-1).contiguous().view(torch.uint8) for t in (first, second)))


def _shares_memory(output: torch.Tensor, tensor: torch.Tensor) -> bool:
    starts = [t.data_ptr() for t in (output, tensor)]
    ends = [t.data_ptr() + t.numel() * t.element_size() for t in (output, tensor)]
    return max(starts) < min(ends)
