from __future__ import annotations

import copy
import json
import pickle
import time

import pytest
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Dict, Text
from gymnasium.vector.utils import batch_space, create_shared_memory

from gym_kernel.envs.text_space import KernelText, clean_text, printable_text

NASTY = [
    "",
    "plain\ttext\n",
    "\ud800",
    "\x00\x01\x1b[31mred\x1b[0m\x7f\x9b",
    "caf\u00e9 \u4e2d \U0001f600",
    "line\r\nline\rline\x0b\x0c\u2028",
    "a" * 100_000,
    "\\" * 5_000,
    "\x00" * 5_000,
]


@pytest.mark.parametrize("text", ["", "a", "\n\t", "x" * 100])
def test_contains_text_that_fits(text: str) -> None:
    assert text in KernelText(100)


@pytest.mark.parametrize("text", ["x" * 101, "\r", "\x00", "\u00e9", "\x7f", "\ud800", 3, None, b"a", ["a"]])
def test_contains_nothing_else(text: object) -> None:
    assert text not in KernelText(100)


def test_contains_is_cheap() -> None:
    space, text = KernelText(65_536), "x" * 65_536
    begun = time.perf_counter()
    for _ in range(10):
        assert text in space
    assert (time.perf_counter() - begun) / 10 < 0.02


def test_samples_are_inside_and_follow_the_seed() -> None:
    one, two = KernelText(200, seed=3), KernelText(200, seed=3)
    samples = [one.sample() for _ in range(50)]
    assert all(sample in one for sample in samples)
    assert samples == [two.sample() for _ in range(50)]


def test_samples_survive_json() -> None:
    space = KernelText(50, seed=0)
    samples = [space.sample() for _ in range(5)]
    assert space.from_jsonable(json.loads(json.dumps(space.to_jsonable(samples)))) == samples


def test_equality_copies_and_pickles() -> None:
    space = KernelText(50)
    assert space == KernelText(50) == copy.deepcopy(space) == pickle.loads(pickle.dumps(space))
    assert space != KernelText(51)
    assert space != Text(50)
    assert Text(50) != space
    assert len(pickle.dumps(space)) < 20_000
    assert repr(space) == "KernelText(50)"


def test_it_batches_like_any_text_space() -> None:
    assert batch_space(KernelText(50), 3).spaces == (KernelText(50),) * 3


@pytest.mark.parametrize("space", [KernelText(50), Dict(text=KernelText(50))])
def test_shared_memory_is_refused_with_a_way_out(space: object) -> None:
    with pytest.raises(CustomSpaceError, match=r"shared_memory=False.*make_vec"):
        create_shared_memory(space, n=2)


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("max_chars", [0, 1, 20, 40, 1_000, 200_000])
def test_any_text_is_made_to_fit(text: str, max_chars: int) -> None:
    assert clean_text(text, max_chars) in KernelText(max_chars)


def test_text_that_fits_is_left_alone() -> None:
    assert clean_text("x = 1\n\ty", 8) == "x = 1\n\ty"


def test_what_does_not_print_is_escaped() -> None:
    assert printable_text("a\x00b\u00e9\ud800") == "a\\x00b\\xe9\\ud800"


def test_compiler_output_stays_readable() -> None:
    text = "\x1b[01m\x1b[Kx.cpp:1:1:\x1b[m\x1b[K \u2018y\u2019 was not declared\r\n"
    assert printable_text(text) == "x.cpp:1:1: 'y' was not declared\n"


def test_head_and_tail_are_kept_and_the_cut_is_counted() -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(5_000))
    cut = clean_text(text, 1_000)
    head, tail = cut.split("\n[... ")[0], cut.split(" left out ...]\n")[1]
    left_out = int(cut.split("[... ")[1].split()[0])
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + left_out + len(tail) == 5_000
    assert len(cut) == 1_000
