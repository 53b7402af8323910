"""Fresh workers wake when that disturbs nobody, and one by one where it may."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from gym_kernel.evaluator.wake_schedule import WakeSchedule

SOON_S = 0.3
LONG_S = 10.0


def wake(schedule: WakeSchedule) -> threading.Event:
    """Have a worker wake when it is its turn, in no time; the event tells that it has."""
    sleeper = Sleeper(schedule)
    sleeper.done.set()
    return sleeper.woke


class Sleeper:
    """A worker that wakes when it is its turn, and is awake once ``done`` is set."""

    def __init__(self, schedule: WakeSchedule) -> None:
        self.woke, self.done = threading.Event(), threading.Event()
        self._schedule = schedule
        threading.Thread(target=self._wake, daemon=True).start()

    def _wake(self) -> None:
        with self._schedule.turn():
            self.woke.set()
            self.done.wait(LONG_S)


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether something holds within ten seconds."""
    deadline = time.monotonic() + LONG_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def schedule() -> WakeSchedule:
    """Two workers in stock, four allowed, idle after a tenth of a second."""
    schedule = WakeSchedule(most_ready=4, idle_s=0.1)
    schedule.add_ready()
    schedule.add_ready()
    return schedule


def test_workers_wake_on_an_idle_device(schedule: WakeSchedule) -> None:
    assert wake(schedule).wait(LONG_S)


def test_workers_wake_together_where_nobody_is_on_the_device() -> None:
    schedule = WakeSchedule(most_ready=4, idle_s=LONG_S)
    woken = [Sleeper(schedule) for _ in range(3)]
    assert all(each.woke.wait(LONG_S) for each in woken)
    for each in woken:
        each.done.set()


def test_workers_wait_while_stock_lasts_and_then_wake_one_by_one(schedule: WakeSchedule) -> None:
    with schedule.on_device():
        sleepers = [Sleeper(schedule) for _ in range(3)]
        assert not any(each.woke.wait(SOON_S) for each in sleepers)
        schedule.note_taken()
        for so_many in range(1, 4):
            assert eventually(lambda: sum(each.woke.is_set() for each in sleepers) == so_many)  # noqa: B023
            time.sleep(SOON_S)
            assert sum(each.woke.is_set() for each in sleepers) == so_many
            next(each for each in sleepers if each.woke.is_set() and not each.done.is_set()).done.set()


def test_a_worker_that_somebody_waits_for_wakes(schedule: WakeSchedule) -> None:
    with schedule.on_device():
        woken = wake(schedule)
        assert not woken.wait(SOON_S)
        with schedule.taking():
            assert woken.wait(LONG_S)


def test_workers_wake_some_time_after_the_device_was_left(schedule: WakeSchedule) -> None:
    with schedule.on_device():
        woken = wake(schedule)
        assert not woken.wait(SOON_S)
    assert woken.wait(LONG_S)


def test_no_more_wake_than_may_be_in_stock() -> None:
    schedule = WakeSchedule(most_ready=2, idle_s=0.0)
    schedule.add_ready()
    schedule.add_ready()
    woken = wake(schedule)
    assert not woken.wait(SOON_S)
    schedule.allow(3)
    assert woken.wait(LONG_S)
