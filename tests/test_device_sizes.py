"""Sizes of tasks follow the memory of the device."""

from __future__ import annotations

import pytest

from gym_kernel.evaluator.device_sizes import at_fitting_sizes
from gym_kernel.linter.official_count import count_official
from gym_kernel.tasks import TaskScale, load

GB = 10**9
H200_BYTES = 150_109_880_320


def test_a_large_card_runs_the_official_sizes() -> None:
    for task in load(["pilot", "core"]):
        assert at_fitting_sizes(task, H200_BYTES) is task
    for task in load("pilot"):
        assert at_fitting_sizes(task, 80 * GB).sizes == task.sizes


def test_on_a_card_of_24_gb_rows_are_left_out_where_the_tensors_are_large() -> None:
    for task in load("pilot"):
        fitting = at_fitting_sizes(task, 24 * GB)
        if task.id == "mingpt_gelu":
            assert fitting.sizes == task.sizes
            continue
        assert fitting.sizes_at(TaskScale.OFFICIAL) in ({"batch_size": 2048}, {"batch_size": 1024}), task.id
        assert fitting.sizes_at(TaskScale.SMALL) == task.sizes_at(TaskScale.SMALL)
        assert (fitting.id, fitting.source) == (task.id, task.source)
        assert count_official(fitting).memory_gib < 0.6 * 24 * GB / 2**30


@pytest.mark.parametrize("name", ["matmul", "causal_attention_fp16", "conv2d_3x3_fp16", "moe_top2_routing"])
def test_every_kind_of_task_can_be_made_to_fit(name: str) -> None:
    (task,) = load(name)
    need = count_official(task).memory_gib
    # The declared need is what decides whether anything is counted at all.
    small = int(0.4 * need * 2**30)
    fitting = at_fitting_sizes(task, small)
    assert fitting.sizes_at(TaskScale.OFFICIAL) != task.sizes_at(TaskScale.OFFICIAL)
    assert count_official(fitting).memory_gib <= 0.56 * small / 2**30


def test_halving_ends_where_nothing_is_left_to_halve() -> None:
    (relu,) = load("relu")
    assert at_fitting_sizes(relu, 1).sizes_at(TaskScale.OFFICIAL) == {"batch_size": 1, "dim": 1}
