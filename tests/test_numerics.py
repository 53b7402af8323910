"""The tolerance rule: what an honest float32 kernel may do, and what it may not."""

import math
import os
import subprocess
import sys

import pytest
import torch

from gym_kernel.evaluator import numerics
from gym_kernel.evaluator.error_bound import ErrorSize, allowed_error, is_well_posed
from gym_kernel.evaluator.numerics import Comparison, compare, output_scale, scaled_error
from gym_kernel.tasks.task import Tolerance

PLAIN = Tolerance()
SOFTMAX = Tolerance(reduction_length=393_216)


def normal(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def tiny_chunks(monkeypatch):
    monkeypatch.setitem(numerics._CHUNK_ELEMENTS, "cpu", 7)


def test_equal_outputs_agree_with_zero_error():
    x = normal(5, 7).float()
    agreement = compare(x, x.clone(), tolerance=PLAIN, input_kind="ties")
    assert agreement.passed
    assert agreement.max_rel_error == 0.0
    assert agreement.max_abs_error == 0.0
    assert agreement.elements == 35
    assert agreement.worst_index == ()
    assert agreement.worst_actual is None
    assert agreement.input_kind == "ties"


def test_allowed_error_is_the_largest_of_three_under_a_cap():
    eps = torch.finfo(torch.float32).eps
    assert allowed_error(torch.float32, PLAIN) == 32 * eps
    assert allowed_error(torch.float32, SOFTMAX) == pytest.approx(eps * math.sqrt(393_216))
    assert allowed_error(torch.float32, PLAIN, 1e-6) == pytest.approx(1.6e-5)
    assert allowed_error(torch.float32, PLAIN, 1.0) == 1e-4
    assert allowed_error(torch.float32, Tolerance(reduction_length=10**12)) == 1e-4
    assert allowed_error(torch.int64, PLAIN) == 0.0


@pytest.mark.parametrize(
    ("dtype", "lower"),
    [
        (torch.float64, torch.float32),
        (torch.float32, torch.float16),
        (torch.float32, torch.bfloat16),
        (torch.float16, torch.float8_e4m3fn),
        (torch.bfloat16, torch.float8_e4m3fn),
    ],
)
def test_arithmetic_of_the_next_lower_precision_is_refused_even_at_the_cap(dtype, lower):
    expected = normal(64, 64)
    rounded = expected.to(lower).to(dtype)
    assert not compare(rounded, expected, tolerance=PLAIN, reference_error=ErrorSize(1.0, 1.0)).passed
    assert compare(expected.to(dtype), expected, tolerance=PLAIN).passed


def test_tf32_products_are_refused():
    a, b = normal(128, 512, seed=1), normal(512, 128, seed=2)
    expected = a.float().double() @ b.float().double()
    honest = a.float() @ b.float()
    tolerance = Tolerance(reduction_length=512)
    assert compare(honest, expected, tolerance=tolerance).passed
    # TF32 keeps 10 bits of the mantissa of each factor.
    tf32 = [(m.float().view(torch.int32) + 0x1000 & ~0x1FFF).view(torch.float32) for m in (a, b)]
    assert not compare(
        tf32[0] @ tf32[1], expected, tolerance=tolerance, reference_error=ErrorSize(1.0, 1.0)
    ).passed


@pytest.fixture(scope="module")
def wide_softmax():
    x = torch.rand(2, 393_216, generator=torch.Generator().manual_seed(3))
    return x, torch.softmax(x.double(), dim=1)


def test_zeros_and_uniform_do_not_pass_a_softmax_of_tiny_outputs(wide_softmax):
    _, expected = wide_softmax
    for null in (torch.zeros_like(expected), torch.full_like(expected, 1 / 393_216)):
        assert not compare(
            null.float(), expected, tolerance=SOFTMAX, reference_error=ErrorSize(1.0, 1.0)
        ).passed


def test_dropped_tail_tile_of_a_sum_is_refused(wide_softmax):
    x, expected = wide_softmax
    shortened = x.exp() / x[:, :-256].exp().sum(dim=1, keepdim=True)
    assert not compare(shortened, expected, tolerance=SOFTMAX).passed


def test_other_orders_of_summation_pass(wide_softmax):
    x, expected = wide_softmax
    e = (x - x.amax(dim=1, keepdim=True)).exp()
    serial_tiles = torch.zeros(2, 1)
    for tile in e.split(1024, dim=1):
        serial_tiles += tile.sum(dim=1, keepdim=True)
    serial_lanes = torch.zeros(2, 256)
    for tile in e.split(256, dim=1):
        serial_lanes += tile
    for total in (serial_tiles, serial_lanes.sum(dim=1, keepdim=True)):
        assert compare(e / total, expected, tolerance=SOFTMAX).passed


def test_unwritten_tail_is_counted_and_located(tiny_chunks):
    expected = normal(4, 10)
    actual = expected.float()
    actual[2, 7:] = math.nan
    agreement = compare(actual, expected, tolerance=PLAIN)
    assert agreement.mismatched == 3
    assert agreement.nan_count == 3
    assert agreement.worst_index == (2, 7)
    assert math.isnan(agreement.worst_actual)
    assert agreement.max_rel_error < 1e-6


def test_worst_element_is_found_across_chunks(tiny_chunks):
    expected = normal(6, 5)
    actual = expected.float()
    actual[0, 1] += 0.1
    actual[4, 3] += 7.0
    agreement = compare(actual, expected, tolerance=PLAIN)
    assert agreement.mismatched == 2
    assert agreement.worst_index == (4, 3)
    assert agreement.worst_actual == actual[4, 3].item()
    assert agreement.max_abs_error == pytest.approx(7.0, rel=1e-6)


def test_missing_clamp_is_refused():
    x = normal(64, 64) * 3
    assert not compare(x.float(), x.clamp(-1, 1), tolerance=PLAIN, reference_error=ErrorSize(1.0, 1.0)).passed


def test_one_wrong_element_in_a_million_is_refused():
    expected = normal(1000, 1000)
    actual = expected.float()
    actual[-1, -1] += 1e-3
    assert compare(actual, expected, tolerance=PLAIN).mismatched == 1


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (-math.inf, -math.inf, True),
        (math.inf, -math.inf, False),
        (math.nan, math.inf, False),
        (math.inf, math.nan, False),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (3e38, math.inf, False),
        (math.inf, 3e38, False),
    ],
)
def test_nonfinite_values_must_stand_in_the_same_places(actual, expected, same):
    x = normal(30)
    a, x[11] = x.float(), expected
    a[11] = actual
    agreement = compare(a, x, tolerance=PLAIN, reference_error=ErrorSize(1.0, 1.0))
    assert agreement.passed is same
    assert math.isfinite(agreement.max_rel_error)
    assert math.isfinite(agreement.max_abs_error)
    assert agreement.expected_nonfinite == (0 if math.isfinite(expected) else 1)
    assert scaled_error(a, x) == (pytest.approx(0.0, abs=1e-6) if same else math.inf)


def test_oracle_beyond_the_range_of_the_dtype_means_infinity():
    expected = torch.tensor([1.0, 1e300, -1e39], dtype=torch.float64)
    assert compare(torch.tensor([1.0, math.inf, -math.inf]), expected, tolerance=PLAIN).passed
    assert not compare(torch.tensor([1.0, 3e38, -math.inf]), expected, tolerance=PLAIN).passed


def test_absolute_tolerance_is_taken_off_first():
    expected = normal(50)
    off = (expected + 5e-4).float()
    tolerance = Tolerance(absolute=6e-4, reason="Two forms of one function.")
    agreement = compare(off, expected, tolerance=tolerance)
    assert agreement.passed
    assert agreement.max_rel_error == 0.0
    assert agreement.max_abs_error == pytest.approx(5e-4, rel=1e-2)
    assert not compare(off, expected, tolerance=PLAIN).passed
    assert not compare((expected + 7e-4).float(), expected, tolerance=tolerance).passed


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_integers_and_booleans_are_exact(dtype):
    expected = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(dtype)
    assert compare(expected.clone(), expected, tolerance=Tolerance(absolute=9, reason="ignored")).passed
    actual = expected.clone()
    actual[1, 0] = 1
    agreement = compare(actual, expected, tolerance=PLAIN)
    assert agreement.mismatched == 1
    assert agreement.worst_index == (1, 0)


def test_large_integers_are_compared_without_rounding():
    expected = torch.tensor([2**62])
    assert not compare(expected + 1, expected, tolerance=PLAIN).passed


def test_complex_outputs_are_compared_by_parts():
    expected = torch.complex(normal(3, 4), normal(3, 4, seed=1))
    actual = expected.to(torch.complex64)
    assert compare(actual, expected, tolerance=PLAIN).passed
    actual[1, 2] += 1j
    assert compare(actual, expected, tolerance=PLAIN).worst_index == (1, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_reference_may_stand_in_for_the_oracle_at_its_own_precision(dtype):
    expected = normal(40, 40).to(dtype)
    assert compare(expected.clone(), expected, tolerance=PLAIN).passed
    assert not compare(expected * 2, expected, tolerance=PLAIN).passed


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (4, 6)])
def test_shapes_of_every_rank(shape):
    expected = torch.ones(shape, dtype=torch.float64)
    agreement = compare(expected.float(), expected, tolerance=PLAIN)
    assert agreement.passed
    assert agreement.elements == math.prod(shape)


def test_layouts_may_differ(tiny_chunks):
    expected = normal(9, 8).t()
    actual = expected.float().contiguous()
    assert compare(actual, expected, tolerance=PLAIN).passed
    actual[5, 6] = 9.0
    assert compare(actual, expected, tolerance=PLAIN).worst_index == (5, 6)


def test_slices_add_up_to_the_whole(tiny_chunks):
    expected = normal(8, 6)
    actual = expected.float()
    actual[5, 4] = -4.0
    whole = compare(actual, expected, tolerance=PLAIN)
    sliced = Comparison(torch.float32, scale=output_scale(expected), tolerance=PLAIN, shape=(8, 6))
    for start in range(0, 8, 3):
        sliced.add(actual[start : start + 3], expected[start : start + 3])
    assert sliced.agreement() == whole


def test_shape_mismatch_is_the_callers_error():
    with pytest.raises(ValueError, match="one shape on one device"):
        compare(torch.ones(2), torch.ones(3), tolerance=PLAIN)


def test_scale_is_the_rms_of_finite_values():
    assert output_scale(torch.tensor([3.0, -4.0])) == pytest.approx(math.sqrt(12.5))
    assert output_scale(torch.tensor([3.0, math.nan, math.inf, -4.0])) == pytest.approx(math.sqrt(12.5))
    assert output_scale(torch.full((10,), 1e30)) == pytest.approx(1e30)
    assert output_scale(torch.full((10,), 1e-25)) == pytest.approx(1e-25)
    assert output_scale(torch.full((3,), math.nan)) == 0.0
    assert output_scale(torch.ones(3, dtype=torch.int32)) == 0.0


def test_oracle_of_zeros_accepts_zeros_alone():
    zeros = torch.zeros(20, dtype=torch.float64)
    assert compare(zeros.float(), zeros, tolerance=PLAIN).passed
    assert not compare(zeros.float() + 1e-6, zeros, tolerance=PLAIN).passed


def test_ill_posed_inputs_are_recognised_by_the_references_own_error():
    assert is_well_posed(torch.float32, 2e-5)
    assert not is_well_posed(torch.float32, 9e-5)
    assert not is_well_posed(torch.float32, math.inf)
    assert not is_well_posed(torch.float32, math.nan)
    assert is_well_posed(torch.int64, math.inf)


def test_scale_may_be_given():
    expected = normal(20)
    actual = (expected + 1e-3).float()
    assert compare(actual, expected, tolerance=PLAIN, scale=1e4).passed
    assert not compare(actual, expected, tolerance=PLAIN).passed


FUSED = """
import math, torch
from gym_kernel.evaluator.numerics_fused import error_sizes

for dtype in (torch.float16, torch.float32):
    for oracle in (torch.float32, torch.float64):
        x = torch.randn(5000, dtype=torch.float64)
        a = x.to(dtype)
        a[4999] += 1
        x = x.to(oracle)
        error = (a.double() - x.double()).abs()
        scaled = (error - 1e-4).clamp(min=0) / (x.double().abs() + 0.7)
        found = error_sizes(a, x, 1e-4, 0.7)
        assert math.isclose(found[0], error.max(), rel_tol=1e-6), (found, error.max())
        assert math.isclose(found[1], scaled.max(), rel_tol=1e-6), (found, scaled.max())
        assert math.isclose(found[2], scaled.square().sum(), rel_tol=1e-5), (found, scaled.square().sum())
        for value in (math.nan, math.inf, -math.inf):
            a[3] = value
            assert error_sizes(a, x, 1e-4, 0.7)[1] == math.inf
        x[3] = math.inf
        assert error_sizes(a, x, 1e-4, 0.7)[1] == math.inf
"""


def test_fused_pass_finds_the_same_errors_in_tritons_interpreter():
    pytest.importorskip("triton")
    # Triton reads the variable when it is imported, so it needs a process of its own.
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", FUSED], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_gpu_and_cpu_agree(dtype):
    expected = normal(300, 1000)
    for bad in (None, 0.5, math.nan, math.inf):
        actual = expected.to(dtype)
        if bad is not None:
            actual[123, 456] = bad
        here = compare(actual, expected, tolerance=PLAIN)
        there = compare(actual.cuda(), expected.cuda(), tolerance=PLAIN)
        assert there.mismatched == here.mismatched == (bad is not None)
        assert there.worst_index == here.worst_index
        assert there.nan_count == here.nan_count
        assert there.max_rel_error == pytest.approx(here.max_rel_error, rel=1e-5)
        assert there.rms_error == pytest.approx(here.rms_error, rel=1e-5)
