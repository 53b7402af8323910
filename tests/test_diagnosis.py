"""Feedback on wrong values points at the cause, for the mistakes that people make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest
import torch
from corpus import read_module
from factories import agreement

from gym_kernel.envs.diagnosis import diagnosis
from gym_kernel.evaluator.numerics import compare
from gym_kernel.tasks.task import Tolerance

pytestmark = pytest.mark.usefixtures("warm_evaluator")

TESTS = Path(__file__).parent
CAUSES = {
    "exploits/tanh_half_arithmetic.py": "float16 or TF32",
    "exploits/softmax_bfloat16_sum.py": "bfloat16",
    "exploits/relu_tail_tile_dropped.py": "the last block",
    "exploits/softmax_without_maximum.py": "subtract the maximum before exp",
    "exploits/sigmoid_exp_from_bits.py": "an exact exp",
}


@pytest.fixture(scope="module")
def env() -> Iterator[gymnasium.Env]:
    env = gymnasium.make("gym_kernel:KernelEnv-v0", device="cpu", timeout_s=60.0)
    yield env
    env.close()


@pytest.mark.parametrize("path", CAUSES)
def test_the_feedback_names_the_cause(env: gymnasium.Env, path: str) -> None:
    module = read_module(TESTS / path)
    env.reset(options={"task": module.task})
    feedback, reward, _, _, info = env.step(module.code)
    assert info["status"] == "incorrect"
    assert reward == 0
    assert CAUSES[path] in feedback.partition("Next:")[2]


@pytest.mark.gpu
def test_an_offset_that_overflows_is_named() -> None:
    module = read_module(TESTS / "exploits/relu_offsets_overflow.py")
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cuda")
    try:
        env.reset()
        feedback, reward, _, _, info = env.step(module.code)
    finally:
        env.close()
    assert info["status"] == "incorrect"
    assert reward == 0
    assert "offsets in int64" in feedback


@pytest.mark.parametrize("limit", [1 << 29, 1 << 30, 1 << 31])
def test_a_first_error_at_the_end_of_32_bits_is_an_overflow(limit: int) -> None:
    elements = 3 << 30
    wrong = agreement(
        elements=elements, mismatched=elements - limit, first_wrong=limit / elements, nan_count=7
    )
    assert "offsets in int64" in diagnosis(wrong)
    assert "int64" not in diagnosis(
        agreement(elements=elements, mismatched=9, first_wrong=0.9 * limit / elements)
    )


def test_rows_that_go_wrong_by_chance_are_not_taken_for_a_tail() -> None:
    wrong = agreement(elements=1_000, mismatched=200, first_wrong=0.6, input_kind="outlier_blocks")
    assert "every element of a row" in diagnosis(wrong)


def test_wrong_elements_are_located() -> None:
    expected = torch.ones(8, 100)
    for wrong, first, column in (
        ((slice(6, None), slice(None)), 0.75, 0.0),
        ((slice(None), slice(90, None)), 90 / 800, 0.9),
        ((3, 7), 307 / 800, 0.07),
    ):
        actual = expected.clone()
        actual[wrong] = 2.0
        found = compare(actual, expected.double(), tolerance=Tolerance())
        assert found.first_wrong == pytest.approx(first)
        assert found.first_wrong_column == pytest.approx(column)
    clean = compare(expected, expected.double(), tolerance=Tolerance())
    assert (clean.first_wrong, clean.first_wrong_column) == (0.0, 0.0)


def test_wrong_elements_are_located_across_chunks() -> None:
    expected = torch.ones(2_000, 1_000)
    actual = expected.clone()
    actual[1_500:, 999] = float("nan")
    found = compare(actual, expected.double(), tolerance=Tolerance())
    assert found.mismatched == 500
    assert found.first_wrong == pytest.approx(1_500_999 / 2_000_000)
    assert found.first_wrong_column == pytest.approx(0.999)
    assert "last 0.1 % of their rows" in diagnosis(found)
