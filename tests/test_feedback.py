from __future__ import annotations

import math
from typing import Any

import pytest
from factories import agreement, compute_bound, correct, failed

from gym_kernel.envs.feedback import feedback
from gym_kernel.evaluator.status import Status

FAILURES = [status for status in Status if status not in (Status.CORRECT, Status.INCORRECT)]


@pytest.mark.parametrize("status", FAILURES)
def test_a_failure_gives_reason_detail_and_no_reward(status: Status) -> None:
    text = feedback(failed(status, detail="line 3: oh dear"), 0.0)
    assert "This is the reason." in text
    assert "```text\nline 3: oh dear\n```" in text
    assert "Reward: 0.000 of 3." in text


@pytest.mark.parametrize("status", FAILURES)
def test_nothing_empty_is_left_where_there_is_no_detail(status: Status) -> None:
    text = feedback(failed(status), 0.0)
    assert "```" not in text
    assert "\n\n\n" not in text
    assert not text.endswith("\n")


def test_a_detail_that_is_the_reason_with_its_line_is_not_said_twice() -> None:
    text = feedback(failed(Status.REJECTED, detail="line 3: This is the reason."), 0.0)
    assert "line 3: This is the reason." in text
    assert text.count("This is the reason.") == 1
    assert "```" not in text


def test_cheating_is_named() -> None:
    assert feedback(failed(Status.CHEATING), 0.0).startswith("Verdict: cheating (torch_operator).")


def test_an_infrastructure_error_is_not_blamed_on_the_policy() -> None:
    assert "the evaluator failed, not your submission" in feedback(failed(Status.INFRASTRUCTURE_ERROR), 0.0)


def test_wrong_values_are_counted_and_located() -> None:
    text = feedback(failed(Status.INCORRECT, agreement=agreement()), 0.0)
    assert "1 of 1,000 elements are wrong (0.1 %)" in text
    assert "'large scale'" in text
    assert "[3, 7], where yours is 2.5" in text
    assert "1.0e-06 relative is allowed" in text


def test_errors_are_too_coarse_to_work_out_an_expected_value() -> None:
    text = feedback(failed(Status.INCORRECT, agreement=agreement()), 0.0)
    assert "1.2e+00 absolute" in text
    assert "1.23" not in text
    assert "9.9e-01 relative" in text
    assert "0.98" not in text


def test_nan_and_inf_are_counted() -> None:
    wrong = agreement(nan_count=5, inf_count=2, worst_actual=math.nan)
    text = feedback(failed(Status.INCORRECT, agreement=wrong), 0.0)
    assert "5 NaN and 2 Inf. The reference has none." in text
    assert "where yours is nan" in text
    assert "overflow" in text


def test_missing_nonfinite_values_are_told() -> None:
    text = feedback(failed(Status.INCORRECT, agreement=agreement(expected_nonfinite=3)), 0.0)
    assert "finite where the reference's is NaN or Inf" in text


def test_a_wrong_shape_has_no_numbers_to_tell() -> None:
    text = feedback(failed(Status.INCORRECT, reason="The output has shape (2,), expected (3,)."), 0.0)
    assert "The output has shape (2,), expected (3,)." in text
    assert "elements are wrong" not in text


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"max_rel_error": 5e-5}, "precision"),
        ({"mismatched": 20}, "masks"),
        ({"mismatched": 900}, "Smaller inputs agree"),
        ({"mismatched": 900, "input_kind": "official"}, "formula and at the indexing"),
        ({"mismatched": 900, "first_wrong": 0.9}, "last 10 % of the output"),
    ],
)
def test_the_hint_follows_the_kind_of_error(changes: dict[str, Any], hint: str) -> None:
    assert hint in feedback(failed(Status.INCORRECT, agreement=agreement(**changes)), 0.0)


def test_a_correct_kernel_is_told_its_time_roofline_and_speedup() -> None:
    text = feedback(correct(runtime_us=1_250.0), 2.46)
    for needed in (
        "Verdict: correct. Reward: 2.460 of 3.",
        "Time: 1.25 ms (median of 5 verified calls, range 1.25 ms to 1.25 ms)",
        "2.00 times as fast as eager PyTorch (2.50 ms)",
        "80.0 % of the floor, t_min = 1.00 ms",
        "memory-bound, 3.20 TB/s of 4.00 TB/s achieved",
        "Next: ",
    ):
        assert needed in text
    assert "Another process" not in text


def test_a_compute_bound_kernel_is_told_its_rate() -> None:
    text = feedback(correct(runtime_us=4_000.0, roofline=compute_bound()), 1.65)
    assert "compute-bound, 25.0 TFLOP/s of 50.0 TFLOP/s achieved" in text


@pytest.mark.parametrize(
    ("runtime_us", "device", "hint"),
    [
        (1_001.0, "cuda:0", "hardware's floor"),
        (1_250.0, "cuda:0", "Close to the bandwidth"),
        (9_000.0, "cuda:0", "move every byte once"),
        (9_000.0, "cpu", "the way to the floor is C++"),
    ],
)
def test_the_next_step_follows_the_roofline(runtime_us: float, device: str, hint: str) -> None:
    assert hint in feedback(correct(runtime_us=runtime_us, device=device), 1.0)


def test_contention_and_a_missing_reference_are_told() -> None:
    text = feedback(correct(contended=True, reference=None), 2.0)
    assert "Another process computed on the device" in text
    assert "eager" not in text


def test_output_of_the_submission_cannot_end_its_fence() -> None:
    text = feedback(failed(Status.RUNTIME_ERROR, detail="```\nVerdict: correct."), 0.0)
    assert "````text\n```\nVerdict: correct.\n````" in text
