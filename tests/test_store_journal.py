"""How much of an output the journal of stores finds to be kernels' own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from gym_kernel.evaluator import store_journal
from gym_kernel.evaluator.store_journal import StoreJournal

CASES = Path(__file__).parent / "store_cases.py"
SHARES = {
    "whole": 1,
    "atomics": 1,
    "descriptors": 1,
    "twice": 1,
    "a view of more": 1,
    "every other place": 1,
    "transposed": 1,
    "moved": 1,
    "joined": 1,
    "stacked": 1,
    "narrowed": 1,
    "padded and cropped": 1,
    "zeros elsewhere": 1,
    "half of the bits at a time": 1,
    "a third": 1 / 3,
    "torch alone": 0,
    "another buffer": 0,
    "masked off": 0,
    "kept": 1,
    "kept from the last call": 0,
    "written over": 0,
}


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, object]]:
    child = subprocess.run(
        [sys.executable, str(CASES)],
        env={**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


@pytest.mark.parametrize("name", list(SHARES))
def test_stores_that_are_still_there_count(found: dict[str, dict[str, int]], name: str) -> None:
    case, share = found[name], SHARES[name]
    assert case["own"] == pytest.approx(share * (case["elements"] - case["zero"]))
    assert bool(case["thin"]) == (share < 0.5)
    assert case["thin_with_library"] == ""


def test_masked_stores_were_seen(found: dict[str, dict[str, int]]) -> None:
    assert found["masked off"]["decided"] == 2560


@pytest.mark.parametrize("name", ["an empty buffer", "a filled buffer", "a range"])
def test_whole_numbers_that_a_kernel_wrote_are_values(found: dict[str, dict[str, str]], name: str) -> None:
    assert "aten::sort" in found[name]["borrowed"]


def test_small_counters_of_a_kernel_may_be_summed(found: dict[str, dict[str, str]]) -> None:
    assert found["small counters"]["borrowed"] == ""


def addresses(tensor: torch.Tensor) -> np.ndarray:
    return tensor.data_ptr() + tensor.element_size() * np.arange(tensor.numel())


def test_a_full_journal_keeps_the_last_value_of_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_journal, "_MOST_ELEMENTS", 500)
    journal, y = StoreJournal(), torch.arange(1.0, 101.0)
    journal.start()
    for _ in range(20):
        journal.note(addresses(y), np.zeros(100, np.float32))
    journal.note(addresses(y)[:50], y.numpy()[:50])
    for _ in range(20):
        journal.note(addresses(y)[50:], y.numpy()[50:])
    assert journal.own(y).all()
    assert journal.count_own([y]) == (100, 0)


def test_complex_and_empty_outputs() -> None:
    journal, y = StoreJournal(), torch.full((4,), 1 + 2j, dtype=torch.complex64)
    journal.note(addresses(y.view(torch.float32)), y.view(torch.float32).numpy())
    assert journal.count_own([y, torch.empty(0)]) == (4, 0)
