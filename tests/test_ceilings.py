"""Measuring ceilings, cross-checking them, and remembering them."""

import dataclasses
import json
import os

import pytest

from gym_kernel.evaluator import ceilings as module
from gym_kernel.evaluator.briefing import DeviceFacts
from gym_kernel.evaluator.cache import cache_dir
from gym_kernel.evaluator.ceilings import cached, cross_checked, measure
from gym_kernel.evaluator.datasheet import lookup
from gym_kernel.evaluator.roofline import Ceilings, CeilingSource

CPU = DeviceFacts("cpu", "Some CPU (R) @ 2.0/GHz", 1 << 34, 0, "", 2, "", "2.13.0", "3.9.0", "")
SOME = Ceilings(1e11, {"float32": 2e11}, 1e12)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GYM_KERNEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def measured(monkeypatch):
    """Counts measurements and makes them instant."""
    calls = []

    def fake(device):
        calls.append(device)
        return SOME

    monkeypatch.setattr(module, "measure", fake)
    return calls


def test_cpu_ceilings_are_plausible():
    import torch

    before = torch.get_num_threads()
    ceilings = measure("cpu")
    assert torch.get_num_threads() == before
    assert set(ceilings.flops_per_s) == {"float32"}
    assert ceilings.rate_of("float32") > 1e6
    assert ceilings.floor_bandwidth_bytes_per_s >= ceilings.bandwidth_bytes_per_s > 1e6
    assert ceilings.source is CeilingSource.MEASURED


def test_second_call_reads_the_cache(cache, measured):
    assert cached(CPU) == cached(CPU) == SOME
    assert measured == ["cpu"]
    (path,) = (cache / "ceilings").iterdir()
    assert path.suffix == ".json"
    assert " " not in path.name
    assert "(" not in path.name


@pytest.mark.parametrize("change", [{"torch": "2.14"}, {"driver": "570"}, {"name": "Other"}, {"threads": 4}])
def test_other_software_or_device_is_measured_again(cache, measured, change):
    cached(CPU)
    cached(dataclasses.replace(CPU, **change))
    assert len(measured) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1, 2]",
        b"\xff\xfe",
        b'{"key": {}, "ceilings": {}}',
        b"[" * 100_000,
    ],
)
def test_corrupt_cache_is_measured_again_and_mended(cache, measured, content):
    cached(CPU)
    (path,) = (cache / "ceilings").iterdir()
    path.write_bytes(content)
    assert cached(CPU) == SOME
    assert len(measured) == 2
    assert cached(CPU) == SOME
    assert len(measured) == 2


@pytest.mark.parametrize("value", [0, -1.0, "1e9", None, True, float("inf"), float("nan")])
@pytest.mark.parametrize("field", ["bandwidth_bytes_per_s", "floor_bandwidth_bytes_per_s"])
def test_impossible_numbers_in_the_cache_are_not_believed(cache, measured, field, value):
    cached(CPU)
    (path,) = (cache / "ceilings").iterdir()
    stored = json.loads(path.read_text())
    stored["ceilings"][field] = value
    path.write_text(json.dumps(stored))
    assert cached(CPU) == SOME
    assert len(measured) == 2


def test_unwritable_cache_is_done_without(tmp_path, monkeypatch, measured):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("GYM_KERNEL_CACHE", str(blocked))
    assert cached(CPU) == cached(CPU) == SOME
    assert len(measured) == 2


def test_failed_write_leaves_nothing_behind(cache, measured, monkeypatch):
    def refuse(*_):
        raise OSError("no")

    monkeypatch.setattr(os, "replace", refuse)
    assert cached(CPU) == SOME
    assert list((cache / "ceilings").iterdir()) == []


@pytest.fixture
def sheet():
    return lookup("NVIDIA H200")


def test_measurement_near_the_datasheet_is_kept(sheet):
    near = Ceilings(4.3e12, {"float32": 50e12, "float16": 700e12}, 4.8e12)
    assert cross_checked(near, sheet) is near
    assert cross_checked(SOME, None) is SOME


@pytest.mark.parametrize("factor", [0.49, 1.11])
def test_measurement_far_from_the_datasheet_is_replaced(sheet, factor):
    far = Ceilings(factor * 4.8e12, {"float32": 50e12, "float16": factor * 989.4e12}, 9e12)
    checked = cross_checked(far, sheet)
    assert checked.source is CeilingSource.DATASHEET
    assert checked.bandwidth_bytes_per_s == checked.floor_bandwidth_bytes_per_s == 4.8e12
    assert checked.flops_per_s == {"float32": 50e12, "float16": 989.4e12}


def test_cache_directory_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("GYM_KERNEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "gym-kernel"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "gym-kernel"
    monkeypatch.setenv("GYM_KERNEL_CACHE", "~/mine")
    assert cache_dir() == tmp_path / "mine"
