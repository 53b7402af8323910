"""Fresh workers wake when that disturbs nobody, and together when it must."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from gym_kernel.evaluator.wake_schedule import WakeSchedule

SOON_S = 0.3
LONG_S = 10.0


def start(work: Callable[[], object]) -> threading.Event:
    """Run something on a thread; the event tells that it has returned."""
    done = threading.Event()

    def run() -> None:
        work()
        done.set()

    threading.Thread(target=run, daemon=True).start()
    return done


@pytest.fixture
def schedule() -> WakeSchedule:
    """Two workers in stock, four allowed, idle after a tenth of a second."""
    schedule = WakeSchedule(most_ready=4, idle_s=0.1)
    schedule.add_ready()
    schedule.add_ready()
    return schedule


def test_workers_wake_on_an_idle_device(schedule: WakeSchedule) -> None:
    assert start(schedule.wait_for_turn).wait(LONG_S)


def test_workers_wait_while_stock_lasts_and_then_wake_together(schedule: WakeSchedule) -> None:
    with schedule.on_device():
        woken = [start(schedule.wait_for_turn) for _ in range(3)]
        assert not any(each.wait(SOON_S) for each in woken)
        schedule.note_taken()
        assert all(each.wait(LONG_S) for each in woken)


def test_a_worker_that_somebody_waits_for_wakes(schedule: WakeSchedule) -> None:
    with schedule.on_device():
        woken = start(schedule.wait_for_turn)
        assert not woken.wait(SOON_S)
        with schedule.taking():
            assert woken.wait(LONG_S)


def test_workers_wake_some_time_after_the_device_was_left(schedule: WakeSchedule) -> None:
    with schedule.on_device():
        woken = start(schedule.wait_for_turn)
        assert not woken.wait(SOON_S)
    assert woken.wait(LONG_S)


def test_no_more_wake_than_may_be_in_stock() -> None:
    schedule = WakeSchedule(most_ready=2, idle_s=0.0)
    schedule.add_ready()
    schedule.add_ready()
    woken = start(schedule.wait_for_turn)
    assert not woken.wait(SOON_S)
    schedule.allow(3)
    assert woken.wait(LONG_S)
