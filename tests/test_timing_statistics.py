"""Statistics derived from raw timing samples."""

import math
import random

import pytest

from gym_kernel.evaluator.timing import Timing


def test_median_of_odd_and_even_counts():
    assert Timing((3.0, 1.0, 2.0)).median_us == 2.0
    assert Timing((4.0, 1.0, 2.0, 3.0)).median_us == 2.5


@pytest.mark.parametrize("count", range(1, 6))
def test_few_samples_give_the_whole_range(count):
    samples = tuple(float(n + 1) for n in range(count))
    assert Timing(samples).interval_us == (1.0, float(count))


def test_a_single_sample_has_no_spread():
    timing = Timing((5.0,))
    assert timing.ci_us == timing.relative_ci == 0.0


def test_one_outlier_moves_neither_median_nor_interval():
    calm = Timing(tuple([10.0] * 30))
    noisy = Timing(tuple([10.0] * 29 + [1e6]))
    assert noisy.median_us == calm.median_us
    assert noisy.interval_us == calm.interval_us == (10.0, 10.0)


def test_interval_holds_the_median_and_narrows():
    draw = random.Random(0)
    few = Timing(tuple(draw.gauss(100, 5) for _ in range(20)))
    many = Timing(tuple(draw.gauss(100, 5) for _ in range(2000)))
    for timing in (few, many):
        low, high = timing.interval_us
        assert low <= timing.median_us <= high
        assert timing.relative_ci == timing.ci_us / timing.median_us
    assert many.ci_us < few.ci_us / 4


def test_interval_covers_the_true_median_19_times_in_20():
    draw = random.Random(1)
    covered = 0
    for _ in range(1000):
        low, high = Timing(tuple(draw.expovariate(1.0) + 1.0 for _ in range(31))).interval_us
        covered += low <= 1.0 + math.log(2) <= high
    assert 930 <= covered <= 1000


def test_raw_samples_keep_their_order():
    assert Timing((3.0, 1.0, 2.0)).samples_us == (3.0, 1.0, 2.0)


@pytest.mark.parametrize("samples", [(), (0.0,), (-1.0,), (1.0, math.nan), (math.inf,)])
def test_impossible_samples_are_refused(samples):
    with pytest.raises(ValueError, match="sample"):
        Timing(samples)
