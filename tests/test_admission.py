"""A GPU's memory bounds how many workers hold a context on it."""

from __future__ import annotations

import pytest

from gym_kernel.evaluator.admission import Admission

GB = 10**9


@pytest.mark.parametrize("memory_gb", [8, 16, 24, 40, 80, 141])
def test_contexts_leave_most_of_the_memory_to_one_submission(memory_gb: int) -> None:
    admission = Admission.for_memory(memory_gb * GB)
    assert admission.ready >= 1
    assert admission.seats >= 2
    if memory_gb >= 24:
        assert (admission.ready + admission.seats) * 0.63 <= 0.2 * memory_gb


def test_more_memory_has_room_for_more() -> None:
    small, large = (Admission.for_memory(memory_gb * GB) for memory_gb in (24, 141))
    assert large.seats > small.seats
    assert large.ready > small.ready
