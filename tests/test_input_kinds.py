"""The hidden inputs: null candidates must fall on them, and honest float32 kernels must not."""

import math

import pytest
import torch
from input_samples import COLUMNS, ROWS, WITH_ROWS_OF_ZEROS, generator, made

from gym_kernel.evaluator.error_bound import ErrorSize, is_well_posed
from gym_kernel.evaluator.input_kinds import InputKind, fill, kinds_for, official_inputs
from gym_kernel.evaluator.kind_tolerance import tolerance_on
from gym_kernel.evaluator.numerics import compare
from gym_kernel.tasks.task import Domain, Tolerance

ROOT = math.sqrt(2 / math.pi)


def minigpt_gelu(x):
    return 0.5 * x * (1 + torch.tanh(ROOT * (x + 0.044715 * x**3)))


FORMULAS = {
    "relu": torch.relu,
    "leaky_relu": torch.nn.functional.leaky_relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "swish": lambda x: x * torch.sigmoid(x),
    "hard_sigmoid": torch.nn.functional.hardsigmoid,
    "hard_tanh": torch.nn.functional.hardtanh,
    "softmax": lambda x: torch.softmax(x, dim=1),
    "log_softmax": lambda x: torch.log_softmax(x, dim=1),
    "mingpt_gelu": minigpt_gelu,
}
ROW_SUMS = Tolerance(reduction_length=393_216)
TOLERANCES = {
    "softmax": ROW_SUMS,
    "log_softmax": ROW_SUMS,
    "tanh": Tolerance(absolute=1e-6, reason="2 * sigmoid(2x) - 1 cancels near zero."),
}

# Each sees the input and the honest output, and knows the official distribution.
NULLS = {
    "identity": lambda x, y: x,
    "zeros": lambda x, y: torch.zeros_like(y),
    "ones": lambda x, y: torch.ones_like(y),
    "mean of the output": lambda x, y: torch.full_like(y, y.mean().item()),
    "mean of the row": lambda x, y: x.mean(dim=1, keepdim=True).expand_as(x).contiguous(),
    "one over columns": lambda x, y: torch.full_like(y, 1 / x.shape[1]),
    "constant shift": lambda x, y: x - math.log(x.shape[1] * (math.e - 1)),
    "best shift": lambda x, y: x + (y - x).mean(),
    "best line": lambda x, y: best_line(x, y),
    "absolute value": lambda x, y: x.abs(),
    "first row for all": lambda x, y: y[:1].expand_as(y).contiguous(),
    "tail left as zeros": lambda x, y: torch.cat((y[:, :-16], torch.zeros_like(y[:, -16:])), dim=1),
    "official half of the line": lambda x, y: torch.where(x < 0, torch.zeros_like(y), y),
    "bfloat16": lambda x, y: y.bfloat16().float(),
    "float16": lambda x, y: y.half().float(),
}


def best_line(x, y):
    centred = x - x.mean()
    slope = (centred * (y - y.mean())).sum() / centred.square().sum()
    return (y.mean() + slope * centred).to(y.dtype)


def judged(name, kind, candidate, seed=0):
    """Agreement of ``candidate(x, honest y)`` on one kind; None where the reference cannot be judged."""
    x = made(kind, seed=seed)
    oracle = FORMULAS[name](x.double())
    reference = FORMULAS[name](x)
    tolerance = tolerance_on(kind, TOLERANCES.get(name, Tolerance()))
    own_error = compare(reference, oracle, tolerance=tolerance).max_rel_error
    if not is_well_posed(torch.float32, own_error):
        return None
    return compare(candidate(x, reference), oracle, tolerance=tolerance, reference_error=ErrorSize(own_error))


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("name", FORMULAS)
def test_null_candidate_is_refused_by_some_kind(name, null):
    if (name, null) == ("relu", "official half of the line"):
        pytest.skip("that is ReLU")
    verdicts = [judged(name, kind, NULLS[null]) for kind in InputKind]
    assert any(agreement is not None and not agreement.passed for agreement in verdicts)


@pytest.mark.parametrize("drop", [1, 7, 16])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_dropping_the_last_columns_of_a_sum_is_refused(name, drop):
    def truncated(x, y):
        high = x.amax(dim=1, keepdim=True)
        total = (x[:, :-drop] - high).exp().sum(dim=1, keepdim=True)
        return (x - high).exp() / total if name == "softmax" else x - high - total.log()

    assert not judged(name, InputKind.OUTLIER_BLOCKS, truncated).passed


def fast_exp(x):
    """exp as ``ex2.approx`` computes it: x * log2(e) rounded to float32, then 2 ulp off either way."""
    exact = torch.exp2((x * 1.4426950408889634).double())
    noise = torch.randint(-2, 3, x.shape, generator=generator(9)).double()
    return (exact * (1 + noise * 2**-23)).float()


def fast_sigmoid(x):
    return 1.0 / (1.0 + fast_exp(-x))


def online(x):
    """Running maximum and rescaled sum over tiles of 64 columns."""
    high = torch.full((x.shape[0], 1), -math.inf)
    total = torch.zeros(x.shape[0], 1)
    for tile in x.split(64, dim=1):
        higher = torch.maximum(high, tile.amax(dim=1, keepdim=True))
        total = total * fast_exp(high - higher) + fast_exp(tile - higher).sum(dim=1, keepdim=True)
        high = higher
    return high, total


def online_softmax(x):
    high, total = online(x)
    return fast_exp(x - high) / total


def online_log_softmax(x):
    high, total = online(x)
    return x - (high + total.log())


HONEST = {
    "relu": [lambda x: torch.where(x > 0, x, 0.0), lambda x: 0.5 * (x + x.abs())],
    "leaky_relu": [lambda x: torch.maximum(x, 0.01 * x)],
    "sigmoid": [fast_sigmoid, lambda x: 0.5 * torch.tanh(0.5 * x) + 0.5],
    "tanh": [lambda x: 2 * fast_sigmoid(2 * x) - 1, lambda x: 1 - 2 / (fast_exp(2 * x) + 1)],
    "swish": [lambda x: x * fast_sigmoid(x), lambda x: x / (1 + fast_exp(-x))],
    "hard_sigmoid": [
        lambda x: (x * 0.16666667 + 0.5).clamp(0, 1),
        lambda x: torch.minimum(torch.relu(x + 3), torch.tensor(6.0)) / 6,
    ],
    "hard_tanh": [lambda x: torch.minimum(torch.maximum(x, torch.tensor(-1.0)), torch.tensor(1.0))],
    "softmax": [online_softmax, lambda x: torch.softmax(x.flip(1), dim=1).flip(1)],
    "log_softmax": [online_log_softmax],
    "mingpt_gelu": [
        lambda x: x * fast_sigmoid(2 * ROOT * (x + 0.044715 * x * x * x)),
        lambda x: 0.5 * x * (1 + (2 * fast_sigmoid(2 * ROOT * x * (1 + 0.044715 * x * x)) - 1)),
    ],
}


@pytest.mark.parametrize("kind", InputKind)
@pytest.mark.parametrize("name", FORMULAS)
def test_honest_float32_kernels_pass_every_kind(name, kind):
    for honest in HONEST[name]:
        agreement = judged(name, kind, lambda x, y, honest=honest: honest(x), seed=5)
        assert agreement is not None, "the pilot's references must be judgeable on every kind"
        assert agreement.passed, (agreement.max_rel_error, agreement.tolerance)


@pytest.mark.parametrize("kind", InputKind)
def test_rows_differ_and_seeds_matter(kind):
    x = made(kind)
    assert torch.isfinite(x).all()
    zeros = ROWS // 8 if kind in WITH_ROWS_OF_ZEROS else 0
    assert len(torch.unique(x, dim=0)) == ROWS - max(zeros - 1, 0)
    assert torch.equal(x, made(kind))
    assert not torch.equal(x, made(kind, seed=1))


DOMAINS = [
    Domain(0, 1),
    Domain(-1, 1),
    Domain(-5, 2),
    Domain(1e-3),
    Domain(low=-1),
    Domain(high=0),
    Domain(-math.inf, -2),
    Domain(2, 3),
    Domain(-6e4, 6e4),
    Domain(),
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("domain", DOMAINS)
def test_values_stay_in_the_domain(domain, dtype):
    for kind in kinds_for((domain,)):
        x = made(kind, domain, dtype=dtype)
        low = torch.tensor(domain.low, dtype=dtype)
        assert torch.isfinite(x).all()
        assert (x >= low).all()
        assert (x <= domain.high).all()
        assert len(x.unique()) > 1 or dtype in (torch.float16, torch.bfloat16)


@pytest.mark.parametrize("shape", [(70, 1024), (5, 14, 1024), (64, 96)])
def test_outliers_are_in_one_block_of_a_row_or_alone_and_in_all_blocks_of_48_rows(shape):
    official = torch.rand(shape, generator=generator(3))
    x = torch.empty(shape)
    fill(x, InputKind.OUTLIER_BLOCKS, Domain(), generator(), official=official)
    rows, untouched = x.view(-1, shape[-1]), official.view(-1, shape[-1])
    length = math.ceil(shape[-1] / 32)
    blocks, lonely = [], []
    for position, (row, before) in enumerate(zip(rows, untouched, strict=True)):
        if position % 3 == 2:
            few = (row != before).nonzero().view(-1)
            assert 1 <= len(few) <= 4
            assert (row[few].abs() >= 29.99).all()
            lonely.append(few.tolist())
            continue
        changed = (row != before)[1:-1].nonzero().view(-1) + 1
        assert changed[-1] - changed[0] < length
        assert (row[changed].abs() >= 29.99).all()
        blocks.append(int(changed[0]))
    assert blocks[0] == shape[-1] - length
    assert blocks[1] == 1
    assert blocks[2:32] == [block * shape[-1] // 32 for block in range(1, 31)]
    assert blocks[32:] == blocks[: len(blocks) - 32]
    last = shape[-1] - 1
    assert lonely[:4] == [[0], [last], [0], [last]]
    assert (rows[2, 0] > 29, rows[5, last] > 29, rows[8, 0] < -29, rows[11, last] < -29) == (True,) * 4
    assert len(set(map(tuple, lonely))) > 10
    assert (rows[:, 1:-1] < -29).any()
    assert (rows[:, 1:-1] > 29).any()
    # The outermost columns hold the largest of all in some rows.
    assert (rows[:, 0].abs() > 101).any()
    assert (rows[:, -1].abs() > 101).any()


@pytest.mark.parametrize("left_out", [0, -1])
def test_an_outermost_column_that_a_maximum_leaves_out_shows_in_every_draw(left_out):
    kept = slice(1, None) if left_out == 0 else slice(None, -1)
    for seed in range(40):
        x = made(InputKind.OUTLIER_BLOCKS, shape=(24, 5000), seed=seed)
        for sign in (1, -1):
            exact = torch.log_softmax(sign * x.double(), dim=1)
            actual = sign * x - torch.logsumexp(sign * x[:, kept], dim=1, keepdim=True)
            assert not compare(actual, exact, tolerance=Tolerance(reduction_length=393_216)).passed, seed


@pytest.mark.parametrize("left_out", [0, 1, 1777, 4095])
def test_a_single_column_of_many_that_a_sum_leaves_out_shows(left_out):
    x = made(InputKind.OUTLIER_BLOCKS, shape=(8192, 4096), dtype=torch.bfloat16)
    squares = x.double().square()
    without = squares.clone()
    without[:, left_out] = 0
    exact, actual = (x.double() / total.mean(dim=1, keepdim=True).sqrt() for total in (squares, without))
    assert not compare(actual.to(torch.bfloat16), exact, tolerance=Tolerance(reduction_length=4096)).passed


@pytest.mark.parametrize("shape", [(1000,), (1, 1000), (1000, 1), (50, 20)])
def test_a_single_row_and_short_rows_have_their_outliers_last(shape):
    official = torch.rand(shape, generator=generator(3))
    x = torch.empty(shape)
    fill(x, InputKind.OUTLIER_BLOCKS, Domain(), generator(), official=official)
    changed = (x.view(-1) != official.view(-1)).nonzero().view(-1).tolist()
    assert changed == list(range(1000 - 32, 1000))


def test_the_negative_tail_is_small_for_all_inputs_of_a_call():
    starts = [made(InputKind.NEGATIVE_TAIL, seed=seed).amax().item() for seed in range(40)]
    assert -5 < min(starts) < -4.5 < -3.5 < max(starts) < -3
    assert all(made(InputKind.NEGATIVE_TAIL, seed=seed).amin() < -8.9 for seed in range(40))
    x = made(InputKind.NEGATIVE_TAIL, Domain(0, 1))
    assert x.amin() > 0.3
    first, second = (torch.empty(ROWS, COLUMNS) for _ in range(2))
    for seed, tensor in enumerate((first, second)):
        fill(tensor, InputKind.NEGATIVE_TAIL, Domain(), generator(seed), tail=-4.0)
    assert abs(first.amax() - second.amax()) < 0.01


def test_a_value_flushed_in_the_tail_is_refused_there_and_nowhere_else():
    def flushed(x, y):
        return torch.where(x < -7.9, torch.zeros_like(y), y)

    x = made(InputKind.SIGNED_NORMAL)
    kept = compare(
        flushed(x, torch.nn.functional.silu(x)), torch.nn.functional.silu(x.double()), tolerance=Tolerance()
    )
    assert kept.passed
    for seed in range(20):
        assert not judged("swish", InputKind.NEGATIVE_TAIL, flushed, seed=seed).passed


@pytest.mark.parametrize("shape", [(), (1,), (0,), (64, 3), (5, 1), (16, 3, 3, 3)])
def test_odd_shapes_are_filled(shape):
    for kind in InputKind:
        assert torch.isfinite(made(kind, shape=shape)).all()


def test_strided_tensors_are_filled_in_place():
    base = torch.full((20, 50), math.nan)
    fill(base.t(), InputKind.OUTLIER_BLOCKS, Domain(), generator())
    assert torch.isfinite(base).all()


def test_official_copies_what_get_inputs_made():
    official = torch.rand(3, 4)
    x = torch.empty(3, 4)
    fill(x, InputKind.OFFICIAL, Domain(), generator(), official=official)
    assert torch.equal(x, official)


@pytest.mark.parametrize(
    ("dtype", "domain"),
    [(torch.int64, Domain()), (torch.bool, Domain()), (torch.float32, Domain(fixed=True))],
)
def test_fixed_and_integer_inputs_stay_official(dtype, domain):
    official = torch.tensor([1, 0, 1]).to(dtype)
    for kind in InputKind:
        x = torch.zeros(3, dtype=dtype)
        fill(x, kind, domain, generator(), official=official)
        assert torch.equal(x, official)
        fill(x, kind, domain, generator())
        assert torch.equal(x, official)


def test_kinds_for_fixed_inputs_is_official_alone():
    assert kinds_for((Domain(fixed=True),)) == (InputKind.OFFICIAL,)
    assert kinds_for((Domain(fixed=True), Domain())) == tuple(InputKind)


def test_official_inputs_are_seeded_and_leave_the_global_generator_alone():
    def get_inputs():
        return [torch.rand(3), 2, [torch.randn(2)], None]

    torch.manual_seed(11)
    before = torch.get_rng_state()
    first, second = official_inputs(get_inputs, "cpu", 5), official_inputs(get_inputs, "cpu", 5)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[2][0], second[2][0])
    assert first[1] == 2
    assert first[3] is None
    assert not torch.equal(first[0], official_inputs(get_inputs, "cpu", 6)[0])


def test_official_inputs_are_made_on_the_device():
    made_on = official_inputs(lambda: (torch.rand(3), torch.empty(2, device="cpu")), "meta", 0)
    assert [x.device.type for x in made_on] == ["meta", "meta"]
