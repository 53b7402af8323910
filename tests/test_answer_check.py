"""Which outputs are refused where the reference itself is off."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from gym_kernel.evaluator.answer_check import AnswerCheck, TakenOutputs
from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.evaluator.input_set import InputSet
from gym_kernel.evaluator.numerics import scaled_error
from gym_kernel.evaluator.outcome import OutcomeError
from gym_kernel.evaluator.reference_bench import ReferenceBench
from gym_kernel.linter.workbench import lint_device
from gym_kernel.tasks import load

CAP = 5e-3
SEEDS = range(2000)


def int8_product(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """As a kernel computes it that scales the sums: the reference rounds each scaled weight to float16."""
    return ((x.double() @ weight.double().T) * scale.double()).half()


def as_the_reference(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """As a kernel computes it that scales the weights first, as the reference does."""
    return (x.float() @ (weight.half() * scale[:, None]).float().T).half()


def without_the_last_feature(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return int8_product(x[:, :-1], weight[:, :-1], scale)


def taken(kernel: Callable[..., torch.Tensor], inputs: InputSet, *, are_copies: bool = True) -> TakenOutputs:
    return TakenOutputs((kernel(*inputs.arguments()),), are_copies)


@pytest.fixture
def bench() -> ReferenceBench:
    device = lint_device("cpu")
    (task,) = load("int8_weight_matmul_fp16")
    return ReferenceBench(task, device.facts, device.ceilings, device.arenas)


@pytest.fixture
def inputs(bench: ReferenceBench) -> Iterator[InputSet]:
    made = bench.new_input_set()
    yield made
    bench.arenas.release(made.arena)


def write(bench: ReferenceBench, inputs: InputSet, wanted: Callable[[float], bool]) -> None:
    """Draw sparse inputs at which the reference's own error is as wanted."""
    for seed in SEEDS:
        bench.write_inputs(inputs, InputKind.SPARSE, seed)
        (reference,) = bench.expected(inputs).outputs
        if wanted(scaled_error(reference, int8_product(*inputs.arguments()).double())):
            return
    raise AssertionError("No such inputs among those drawn.")


@pytest.fixture
def check(bench: ReferenceBench, inputs: InputSet) -> AnswerCheck:
    """A check that has measured the reference where it is at its usual best."""
    check = AnswerCheck(bench)
    write(bench, inputs, lambda error: error < 1e-3)
    assert check.check(taken(int8_product, inputs), InputKind.SPARSE, inputs) is not None
    return check


@pytest.mark.parametrize("kernel", [int8_product, as_the_reference])
def test_right_outputs_pass_where_the_reference_is_off(bench, inputs, check, kernel) -> None:
    write(bench, inputs, lambda error: error > CAP)
    outputs = taken(kernel, inputs)
    # Comparing the two says that one of them is wrong, but not which.
    assert scaled_error(int8_product(*inputs.arguments()), bench.expected(inputs).outputs[0].double()) > CAP
    check.check_timed(outputs, InputKind.SPARSE, inputs)
    check.check(outputs, InputKind.SPARSE, inputs)


@pytest.mark.parametrize("wanted", [lambda error: error < 1e-3, lambda error: 1.5e-3 < error < 2.4e-3])
def test_wrong_outputs_fail_where_the_reference_is_fit(bench, inputs, check, wanted) -> None:
    write(bench, inputs, wanted)
    outputs = taken(without_the_last_feature, inputs)
    with pytest.raises(OutcomeError, match="in a timed call"):
        check.check_timed(outputs, InputKind.SPARSE, inputs)
    with pytest.raises(OutcomeError, match="on hidden inputs"):
        check.check(outputs, InputKind.SPARSE, inputs)


def test_verdicts_do_not_depend_on_what_was_judged_before(bench, inputs, check) -> None:
    before = {kind: bench.errors.usual(kind, inputs.variant_of(kind, 1)) for kind in bench.kinds}
    write(bench, inputs, lambda error: error > CAP)
    check.check_timed(taken(as_the_reference, inputs), InputKind.SPARSE, inputs)
    bench.draw_parameters(5)
    assert {kind: bench.errors.usual(kind, inputs.variant_of(kind, 1)) for kind in bench.kinds} == before
    (task,) = load("int8_weight_matmul_fp16")
    device = lint_device("cpu")
    again = ReferenceBench(task, device.facts, device.ceilings, device.arenas)
    assert {kind: again.errors.usual(kind, inputs.variant_of(kind, 1)) for kind in again.kinds} == before


def test_the_usual_errors_of_every_variant_are_known(bench, inputs) -> None:
    for seed in range(200):
        for kind in bench.kinds:
            bench.errors.usual(kind, inputs.variant_of(kind, seed))


def test_memory_that_a_worker_may_write_is_looked_at_once(bench, inputs, check) -> None:
    write(bench, inputs, lambda error: 2.3e-3 < error < 2.5e-3)
    exact, reference = int8_product(*inputs.arguments()), bench.expected(inputs).outputs[0]
    # On the other side of the oracle, a little further from it than the reference.
    inexact = TakenOutputs((exact + 1.2 * (exact - reference),), are_copies=True)
    check.check_timed(inexact, InputKind.SPARSE, inputs)
    outputs = TakenOutputs(inexact.tensors, are_copies=False)
    with pytest.raises(OutcomeError, match="in a timed call"):
        check.check_timed(outputs, InputKind.SPARSE, inputs)
