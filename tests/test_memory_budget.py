"""Memory that is lent to several at once comes back, and is waited for only so long."""

from __future__ import annotations

import threading

import pytest

from gym_kernel.evaluator.memory_budget import MemoryBudget


def test_more_than_there_is_becomes_all_of_it() -> None:
    budget = MemoryBudget(100)
    with budget.lend(250, patience_s=0) as lent_bytes:
        assert lent_bytes == 100
        with budget.lend(1, patience_s=0) as none:
            assert none == 0
        with budget.lend(0, patience_s=0) as nothing:
            assert nothing == 0
    with budget.lend(100, patience_s=0) as again:
        assert again == 100


def test_it_comes_back_where_the_borrower_fails() -> None:
    budget = MemoryBudget(100)
    with pytest.raises(RuntimeError, match="broken"), budget.lend(100, patience_s=0):
        raise RuntimeError("broken")
    with budget.lend(100, patience_s=0) as lent_bytes:
        assert lent_bytes == 100


def test_it_is_waited_for() -> None:
    budget = MemoryBudget(100)
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with budget.lend(60, patience_s=0):
            taken.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(30)
    with budget.lend(40, patience_s=0) as beside:
        assert beside == 40
    threading.Timer(0.2, done.set).start()
    with budget.lend(41, patience_s=30) as lent_bytes:
        assert lent_bytes == 41
    holder.join(30)
