"""In half precision the errors of all elements together count: what one rounding leaves, and what is more than that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from factories import agreement, failed
from torch import Tensor

from gym_kernel.envs.feedback import feedback
from gym_kernel.evaluator.error_bound import ErrorSize
from gym_kernel.evaluator.numerics import compare
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.verdict import Agreement
from gym_kernel.tasks.task import Tolerance

BF16, FP16 = torch.bfloat16, torch.float16
SHAPES = [(1, 8), (16, 512), (64, 128), (1024, 1024)]
SEEDS = range(5)
Kernel = Callable[[Tensor, Tensor], Tensor]


def judged(kernel: Tensor, oracle: Tensor, reference: Tensor) -> Agreement:
    """As the judge compares an output, with the reference's own error."""
    own = compare(reference, oracle, tolerance=Tolerance())
    error = ErrorSize(own.max_rel_error, own.rms_error)
    return compare(kernel, oracle, tolerance=Tolerance(), reference_error=error)


def draws(dtype: torch.dtype, rows: int, columns: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, columns, generator=generator).to(dtype)
    return x, (torch.rand(columns, generator=generator) + 0.5).to(dtype)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


HONEST: dict[str, Kernel] = {
    "float32 throughout": lambda x, w: rms_norm(x.float(), w.float()).to(x.dtype),
    "rounded before the weight": lambda x, w: rms_norm(x.float(), torch.ones(())).to(x.dtype) * w,
    "the dtype's own arithmetic": rms_norm,
}
DISHONEST: dict[str, Kernel] = {
    "2 % more": lambda x, w: (1.02 * rms_norm(x.float(), w.float())).to(x.dtype),
    "float8 inputs": lambda x, w: rms_norm(x.to(torch.float8_e4m3fn).float(), w.float()).to(x.dtype),
}


@pytest.mark.parametrize("dtype", [BF16, FP16])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", HONEST)
def test_roundings_pass(name: str, shape: tuple[int, int], dtype: torch.dtype) -> None:
    for seed in SEEDS:
        x, weight = draws(dtype, *shape, seed)
        oracle = rms_norm(x.double(), weight.double())
        exact = rms_norm(x.float(), weight.float()).to(dtype)
        found = judged(HONEST[name](x, weight), oracle, exact)
        assert found.passed, (found.rms_error, found.rms_tolerance)


@pytest.mark.parametrize("shape", SHAPES[1:])
@pytest.mark.parametrize("name", DISHONEST)
def test_what_the_largest_error_lets_through_is_refused(name: str, shape: tuple[int, int]) -> None:
    for seed in SEEDS:
        x, weight = draws(BF16, *shape, seed)
        oracle = rms_norm(x.double(), weight.double())
        found = judged(DISHONEST[name](x, weight), oracle, rms_norm(x.float(), weight.float()).to(BF16))
        assert found.mismatched == 0 or name == "float8 inputs"
        assert not found.passed
        assert found.is_biased


def test_in_float16_four_in_a_thousand_is_a_bias() -> None:
    x, weight = draws(FP16, 64, 256, 0)
    exact = rms_norm(x.double(), weight.double())
    reference = exact.to(FP16)
    assert judged(reference, exact, reference).passed
    found = judged((1.004 * exact).to(FP16), exact, reference)
    assert found.mismatched == 0
    assert not found.passed


@pytest.mark.parametrize(("part", "passes"), [(256, True), (128, True), (16, True), (2, False)])
def test_short_sums_in_half_precision_are_refused(part: int, passes: bool) -> None:
    """A few partial sums rounded on the way are what split-K does; one rounding for every two products is not."""
    a, b = draws(FP16, 48, 256, 1)[0], draws(FP16, 256, 64, 2)[0]
    oracle, total = a.double() @ b.double(), torch.zeros(48, 64, dtype=FP16)
    for start in range(0, 256, part):
        total += (a[:, start : start + part].float() @ b[start : start + part].float()).half()
    found = judged(total, oracle, (a.float() @ b.float()).half())
    assert found.mismatched == 0
    assert found.passed is passes


def test_a_reference_that_rounds_more_gives_more_room() -> None:
    x, weight = draws(BF16, 64, 256, 0)
    oracle = rms_norm(x.double(), weight.double())
    rough = (1.02 * rms_norm(x.float(), weight.float())).to(BF16)
    assert judged(rough, oracle, (0.99 * oracle).to(BF16)).passed
    assert not judged(rough, oracle, oracle.to(BF16)).passed


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_elsewhere_the_worst_element_alone_is_judged(dtype: torch.dtype) -> None:
    values = torch.arange(100).to(dtype)
    found = compare(values, values.double() if dtype.is_floating_point else values, tolerance=Tolerance())
    assert found.passed
    assert found.rms_tolerance is None


def test_feedback_says_that_all_elements_are_off_together() -> None:
    biased = agreement(
        mismatched=0,
        max_rel_error=0.02,
        tolerance=0.03,
        rms_error=9e-3,
        rms_tolerance=4.7e-3,
        nan_count=0,
        inf_count=0,
    )
    text = feedback(failed(Status.INCORRECT, agreement=biased), 0.0)
    assert "9.0e-03 in their root mean square, where 4.7e-03 is allowed" in text
    assert "a factor that is slightly off" in text
    assert "elements are wrong" not in text
