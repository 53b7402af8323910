"""Fresh workers wake when that disturbs nobody, and together when it must."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gym_kernel.evaluator.wake_schedule import WakeSchedule

SOON_S = 0.2
LONG_S = 10.0


def start(work: Callable[[], object]) -> threading.Event:
    """Run something on a thread; the event tells that it has returned."""
    done = threading.Event()

    def run() -> None:
        work()
        done.set()

    threading.Thread(target=run, daemon=True).start()
    return done


def test_workers_wake_at_once_on_an_idle_device() -> None:
    schedule = WakeSchedule(most_ready=2)
    schedule.add_ready()
    assert start(schedule.wait_for_turn).wait(LONG_S)


def test_workers_wait_while_stock_lasts_and_then_wake_together() -> None:
    schedule = WakeSchedule(most_ready=2)
    schedule.add_ready()
    with schedule.on_device():
        woken = [start(schedule.wait_for_turn) for _ in range(3)]
        assert not any(each.wait(SOON_S) for each in woken)
        schedule.note_taken()
        assert all(each.wait(LONG_S) for each in woken)


def test_a_worker_that_somebody_waits_for_wakes() -> None:
    schedule = WakeSchedule(most_ready=2)
    schedule.add_ready()
    with schedule.on_device():
        woken = start(schedule.wait_for_turn)
        assert not woken.wait(SOON_S)
        with schedule.taking():
            assert woken.wait(LONG_S)


def test_workers_wake_once_the_device_is_free() -> None:
    schedule = WakeSchedule(most_ready=2)
    schedule.add_ready()
    with schedule.on_device():
        woken = start(schedule.wait_for_turn)
        assert not woken.wait(SOON_S)
    assert woken.wait(LONG_S)


def test_no_more_wake_than_may_be_in_stock() -> None:
    schedule = WakeSchedule(most_ready=2)
    schedule.add_ready()
    schedule.add_ready()
    woken = start(schedule.wait_for_turn)
    assert not woken.wait(SOON_S)
    schedule.note_taken()
    assert woken.wait(LONG_S)
