"""Verdicts that make no sense cannot be made."""

import dataclasses

import pytest

from gym_kernel.evaluator.roofline import Ceilings, Work, roofline_of
from gym_kernel.evaluator.status import Blame, Status
from gym_kernel.evaluator.timing import Timing
from gym_kernel.evaluator.verdict import Agreement, Verdict

AGREES = Agreement("official", 10, 0, 0.0, 0.0, 1e-6)
DIFFERS = Agreement("ties", 10, 3, 1.0, 0.5, 1e-6, (4,), 7.0)
ROOFLINE = roofline_of(Work(1_000_000, {"float32": 1e6}), Ceilings(1e12, {"float32": 1e13}, 2e12))


def verdict(status, **changes):
    return Verdict(status, "relu", "id", "cpu", "process", **changes)


def correct(**changes):
    fields = {"agreement": AGREES, "runtime": Timing((2.0,)), "roofline": ROOFLINE}
    return verdict(Status.CORRECT, **{**fields, **changes})


@pytest.mark.parametrize("missing", ["agreement", "runtime", "roofline"])
def test_correct_needs_its_evidence(missing):
    with pytest.raises(ValueError, match="needs a runtime, a roofline and an agreement"):
        correct(**{missing: None})


def test_correct_cannot_carry_a_failed_comparison():
    with pytest.raises(ValueError, match="failed comparison"):
        correct(agreement=DIFFERS)


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.CORRECT])
def test_only_correct_carries_a_runtime(status):
    cheat = "identity" if status is Status.CHEATING else ""
    assert verdict(status, reason="Because.", cheat=cheat).runtime_us is None
    with pytest.raises(ValueError, match="runtime"):
        verdict(status, reason="Because.", cheat=cheat, runtime=Timing((1.0,)))
    with pytest.raises(ValueError, match="reason"):
        verdict(status, cheat=cheat)


def test_a_cheat_is_named_exactly_when_cheating():
    with pytest.raises(ValueError, match="cheat"):
        verdict(Status.CHEATING, reason="Because.")
    with pytest.raises(ValueError, match="cheat"):
        verdict(Status.INCORRECT, reason="Because.", cheat="identity")
    with pytest.raises(ValueError, match="cheat"):
        correct(cheat="identity")


def test_verdicts_cannot_be_changed_afterwards():
    with pytest.raises(dataclasses.FrozenInstanceError):
        correct().status = Status.INCORRECT
    with pytest.raises(ValueError, match="runtime"):
        dataclasses.replace(correct(), status=Status.INCORRECT, reason="Because.")


@pytest.mark.parametrize("status", Status)
def test_blame_follows_from_the_status(status):
    if status is Status.CORRECT:
        assert status.blame is Blame.NOBODY
    elif status is Status.INFRASTRUCTURE_ERROR:
        assert status.blame is Blame.INFRASTRUCTURE
    else:
        assert status.blame is Blame.SUBMISSION


def test_derived_numbers():
    made = correct(reference=Timing((6.0,)))
    assert made.correct
    assert made.speedup == 3.0
    assert made.runtime_us == 2.0
    assert made.roofline_fraction == pytest.approx(ROOFLINE.t_min_us / 2.0)
    assert correct().speedup is None
    assert correct(runtime=Timing((1e-9,))).roofline_fraction == 1.0


def test_roofline_takes_the_larger_of_memory_and_compute():
    ceilings = Ceilings(1e9, {"float32": 1e9, "float16": 4e9}, 2e9)
    memory = roofline_of(Work(1000, {"float32": 500.0}), ceilings)
    assert memory.memory_bound
    assert memory.t_min_us == pytest.approx(1.0)
    assert memory.floor_us == pytest.approx(0.8 * 0.5)
    compute = roofline_of(Work(1000, {"float32": 500.0, "float16": 8000.0}), ceilings)
    assert not compute.memory_bound
    assert compute.t_min_us == pytest.approx(2.5)
