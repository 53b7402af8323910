"""What the harness runs to learn whether the witnesses are awake."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import torch

from gym_kernel.evaluator.canary import choose_canary, run_canary, was_canary_seen, without_canary
from gym_kernel.evaluator.own_work import refuse_work
from gym_kernel.evaluator.work_evidence import Witness
from gym_kernel.evaluator.worker_messages import WorkEvidence

CANARIES = sorted({choose_canary(random.Random(seed)) for seed in range(400)})


@pytest.fixture(scope="module")
def witness() -> Iterator[Witness]:
    from triton.runtime import interpreter

    memory = interpreter._interpreter
    yield Witness(torch.device("cpu"))
    interpreter._interpreter = memory


@pytest.mark.parametrize("name", [name for name in CANARIES if name])
def test_a_canary_is_noted_by_both_witnesses_and_leaves_nothing_else(witness: Witness, name: str) -> None:
    with witness.watch(profiled=False) as observation:
        run_canary(name)
    evidence = observation.evidence
    assert was_canary_seen(name, evidence)
    assert refuse_work(evidence)
    assert not refuse_work(without_canary(name, evidence))


def test_a_canary_does_not_cover_for_other_operators(witness: Witness) -> None:
    with witness.watch(profiled=False) as observation:
        torch.relu(torch.ones(4))
        run_canary("erfc")
    assert "aten::relu" in refuse_work(without_canary("erfc", observation.evidence))


def test_a_canary_is_missed_in_empty_notes() -> None:
    assert "" in CANARIES
    assert len(CANARIES) > 10
    assert was_canary_seen("", WorkEvidence())
    assert not was_canary_seen("erfc", WorkEvidence())
    assert not was_canary_seen("erfc", WorkEvidence(operations=("aten::erfc",)))
