"""Finding out which isolation tier a machine has, and demanding one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from fence_fixtures import require

from gym_kernel.errors import ConfigurationError, IsolationUnavailable
from gym_kernel.evaluator import fence_probe
from gym_kernel.evaluator.client import EvaluatorConfig
from gym_kernel.evaluator.fence import Isolation, choose_isolation
from gym_kernel.evaluator.fence_probe import IsolationReport, Layer, MissingLayer, probe_isolation
from gym_kernel.evaluator.processes import children_of


def test_an_unknown_tier_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="isolation='fort' is not known; pass one of 'auto', 'full'"):
        EvaluatorConfig(isolation="fort")
    with pytest.raises(ConfigurationError):
        choose_isolation("fort")


def test_a_tier_that_cannot_be_had_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    lack = MissingLayer(Layer.SECCOMP, "System calls cannot be filtered: install libseccomp.")
    report = IsolationReport(Isolation.LANDLOCK, (lack,))
    monkeypatch.setattr(fence_probe, "probe_isolation", lambda: report)
    assert choose_isolation("auto") is Isolation.LANDLOCK
    assert choose_isolation("landlock") is Isolation.LANDLOCK
    assert choose_isolation("process") is Isolation.PROCESS
    with pytest.raises(
        IsolationUnavailable, match=r"'full' cannot be had here: System calls .* 'landlock' on this"
    ):
        choose_isolation("full")


@pytest.mark.parametrize(
    ("broken", "tier"),
    [
        ("open_pid_namespace", Isolation.LANDLOCK),
        ("seccomp_is_available", Isolation.LANDLOCK),
        ("landlock_abi", Isolation.PROCESS),
    ],
)
def test_a_missing_layer_lowers_the_tier(
    monkeypatch: pytest.MonkeyPatch, broken: str, tier: Isolation
) -> None:
    require(Isolation.FULL)

    def refuse() -> int:
        if broken == "open_pid_namespace":
            raise PermissionError(1, "Operation not permitted")
        return 0

    monkeypatch.setattr(fence_probe, broken, refuse)
    report = probe_isolation()
    assert report.tier is tier
    assert len(report.missing) == 1
    assert report.missing_for(Isolation.FULL)


def test_a_probe_leaves_nothing_behind() -> None:
    before = set(children_of(os.getpid()))
    folders = set(Path(tempfile.gettempdir()).glob("gym-kernel-probe-*"))
    probe_isolation()
    assert set(children_of(os.getpid())) == before
    assert set(Path(tempfile.gettempdir()).glob("gym-kernel-probe-*")) == folders
