from __future__ import annotations

import math
from typing import get_type_hints

import pytest
from factories import agreement, briefing, correct, failed

from gym_kernel.envs.info import KernelInfo, reset_info, step_info
from gym_kernel.evaluator.status import Status
from gym_kernel.tasks import load

INFOS = [
    reset_info(load("relu")[0], briefing()),
    step_info(correct(), briefing(), 2.0),
    step_info(failed(Status.INCORRECT, agreement=agreement()), briefing(), 0.0),
    *(
        step_info(failed(status, roofline=None), briefing(), 0.0)
        for status in Status
        if status is not Status.CORRECT
    ),
]


@pytest.mark.parametrize("info", INFOS)
def test_every_info_has_the_same_keys_with_the_same_types(info: KernelInfo) -> None:
    assert {key: type(value) for key, value in info.items()} == get_type_hints(KernelInfo)


def test_after_reset_there_is_no_verdict() -> None:
    info = reset_info(load("relu")[0], briefing())
    assert (info["task"], info["status"], info["correct"], info["reward"]) == ("relu", "", False, 0.0)
    assert (info["t_min_us"], info["reference_us"]) == (1_000.0, 1_500.0)
    assert math.isnan(info["runtime_us"])
    assert (info["device"], info["isolation"]) == ("cuda:0", "process")


def test_each_info_is_a_dictionary_of_its_own() -> None:
    task = load("relu")[0]
    assert reset_info(task, briefing()) is not reset_info(task, briefing())


def test_a_correct_step_is_told_in_numbers() -> None:
    info = step_info(correct(runtime_us=2_000.0), briefing(), 1.65)
    assert info["status"] == "correct"
    assert info["correct"] is True
    assert (info["runtime_us"], info["runtime_ci_us"], info["speedup"]) == (2_000.0, 0.0, 2.0)
    assert (info["roofline_fraction"], info["reward"]) == (0.5, 1.65)
    assert (info["queue_s"], info["compile_s"], info["evaluate_s"]) == (0.1, 0.2, 1.0)


def test_what_the_verdict_leaves_open_comes_from_the_briefing() -> None:
    info = step_info(failed(Status.REJECTED, roofline=None), briefing(), 0.0)
    assert (info["t_min_us"], info["reference_us"]) == (1_000.0, 1_500.0)


def test_a_cheat_is_named() -> None:
    assert step_info(failed(Status.CHEATING), briefing(), 0.0)["cheat"] == "torch_operator"
