"""Hidden inputs with values of a special kind: ties, zeros, and sizes that stand for infinity in careless padding."""

import pytest
import torch
from input_samples import COLUMNS, ROWS, WITH_ROWS_OF_ZEROS, made

from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.evaluator.numerics import compare
from gym_kernel.tasks.task import Domain, Tolerance


def test_ties_have_many_equal_maxima():
    x = made(InputKind.TIES)
    assert all(len(row.unique()) == 5 for row in x)
    assert ((x == x.amax(dim=1, keepdim=True)).sum(dim=1) > 50).all()


@pytest.mark.parametrize("seed", range(3))
def test_maxima_of_ties_are_powers_of_two_and_others_by_turns(seed):
    maxima = [float(row.amax()) for row in made(InputKind.TIES, seed=seed)[:6]]
    assert sorted(maxima[:3]) == [1.0, 81 / 64, 2.0]
    assert maxima[3:] == maxima[:3]
    # A single row has each of them in some calls.
    single = {float(made(InputKind.TIES, shape=(1, 500), seed=seed).amax()) for seed in range(3)}
    assert single == {1.0, 81 / 64, 2.0}


def test_rounding_of_halves_to_codes_shows_in_ties():
    for seed in range(3):
        x = made(InputKind.TIES, seed=seed)
        _, exponent = torch.frexp(x.abs().amax(dim=1, keepdim=True))
        codes = torch.ldexp(x, 7 - exponent)
        halves = (codes.abs() % 1) == 0.5
        assert (halves.any(dim=1)).sum() >= ROWS // 3
        away = torch.where(halves, codes.sign() * (codes.abs() + 0.5), codes.round())
        assert (away != codes.round()).any()


def test_sparse_is_mostly_zero():
    zeros = (made(InputKind.SPARSE) == 0).double().mean().item()
    assert 0.85 < zeros < 0.95


@pytest.mark.parametrize("kind", WITH_ROWS_OF_ZEROS)
def test_some_kinds_have_rows_of_zeros_where_there_are_several_rows(kind):
    assert [int(row) for row in (made(kind) == 0).all(dim=1).nonzero()] == [7, 15, 23, 31]
    assert (made(kind, shape=(7, COLUMNS)) != 0).any(dim=1).all()
    # A domain without zero has its own anchor.
    assert (made(kind, Domain(2, 3))[7] == 2).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("columns", [128, 7001])
def test_an_epsilon_too_many_under_the_root_of_a_norm_is_seen(dtype, columns):
    x = made(InputKind.SMALL_SCALE, shape=(64, columns), dtype=dtype)
    squares = x.double().square().sum(dim=1)
    exact, actual = squares.sqrt(), (squares + 1e-6).sqrt().to(dtype)
    assert compare(exact.to(dtype), exact, tolerance=Tolerance()).passed
    if dtype is torch.float16 or columns == 128:
        assert not compare(actual, exact, tolerance=Tolerance()).passed


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [(torch.float32, 1.6e4, 2.4e4), (torch.bfloat16, 1.6e4, 2.4e4), (torch.float16, 210, 390)],
)
def test_huge_rows_take_turns_in_sign(dtype, low, high):
    x = made(InputKind.HUGE, dtype=dtype)
    assert low <= x.abs().amin() <= x.abs().amax() <= high
    positive = (x > 0).double().mean(dim=1)
    assert ((positive < 0.1) | (positive > 0.9)).all()
    assert ((positive[1:] - positive[:-1]).abs() > 0.8).all()
    # A single row has either sign, from call to call.
    signs = {float(made(InputKind.HUGE, shape=(1, 50), seed=seed).sign().mean()) for seed in range(8)}
    assert signs == {-1.0, 1.0}


def test_huge_in_a_bounded_domain_is_its_edges():
    x = made(InputKind.HUGE, Domain(0, 1))
    assert set(x.unique().tolist()) == {0.0, 1.0}
    assert (x == 1).all(dim=1).sum() == ROWS // 2
    assert 0.01 < (x == 0).double().mean() < 0.03
    x = made(InputKind.HUGE, Domain(-4, 2))
    assert set(x.unique().tolist()) == {-4.0, 2.0}
    assert (x == 2).all(dim=1).any()
    assert (x == -4).all(dim=1).any()


@pytest.mark.parametrize(
    ("dtype", "edge"), [(torch.float32, 1e29), (torch.bfloat16, 1e29), (torch.float16, 6e4)]
)
def test_a_vast_domain_is_the_real_line_with_huge_values_near_its_edges(dtype, edge):
    domain = Domain(-edge, edge)
    for kind in set(InputKind) - {InputKind.HUGE}:
        assert torch.equal(made(kind, domain, dtype=dtype), made(kind, dtype=dtype))
    x = made(InputKind.HUGE, domain, dtype=dtype).double()
    assert 0.29 * edge <= x.abs().amin() < 0.31 * edge
    assert 0.89 * edge < x.abs().amax() <= 0.91 * edge
    assert ((x > 0).double().mean(dim=1) > 0.9).sum() == ROWS // 2
    # A wide room on one side of its edge is no copy's.
    assert made(InputKind.HUGE, Domain(0, 3e4)).unique().tolist() == [0, 3e4]
