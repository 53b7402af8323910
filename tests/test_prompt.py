from __future__ import annotations

import pytest
from factories import briefing

from gym_kernel.envs.prompt import task_prompt
from gym_kernel.tasks import Task, WorkPolicy, load

TASKS = load("pilot")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_the_reference_is_shown_as_it_stands(task: Task) -> None:
    assert f"```python\n{task.source.rstrip()}\n```" in task_prompt(task, briefing())


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_the_prompt_is_compact(task: Task, device: str) -> None:
    assert len(task_prompt(task, briefing(device))) < 6_000


def test_it_states_the_contract_and_the_reward() -> None:
    prompt = task_prompt(TASKS[0], briefing())
    for needed in (
        "class ModelNew(torch.nn.Module)",
        "0.3 + 2.7 * min(t_min / t, 1)",
        "float32[4096, 393216]",
        "Only the last fenced block counts",
        "Cheating earns nothing",
        "float64",
        "read-only",
    ):
        assert needed in prompt


def test_it_states_the_device_and_the_target() -> None:
    prompt = task_prompt(TASKS[0], briefing())
    for needed in (
        "NVIDIA H200",
        "4.00 TB/s",
        "float16 700 TFLOP/s",
        "t_min = 1.00 ms",
        "memory-bound",
        "1.50 ms",
    ):
        assert needed in prompt
    assert "CUDA C++" in prompt
    assert "interpreter" not in prompt


def test_on_a_cpu_it_says_what_is_different_there() -> None:
    task = TASKS[0]
    prompt = task_prompt(task, briefing("cpu"))
    assert "C++ through" in prompt
    assert "8 threads" in prompt
    assert "interpreter" in prompt
    assert "CUDA" not in prompt


def test_sizes_that_differ_from_the_text_are_named() -> None:
    prompt = task_prompt(TASKS[0], briefing(sizes={"batch_size": 1024, "dim": 77}))
    assert "On this device the sizes are: batch_size = 1024, dim = 77." in prompt
    assert "the sizes are" not in task_prompt(TASKS[0], briefing())


def test_mixed_work_is_allowed_where_the_task_says_so() -> None:
    import dataclasses

    mixed = dataclasses.replace(TASKS[0], work_policy=WorkPolicy.MIXED)
    assert "may share the work" in task_prompt(mixed, briefing())
    assert "must be computed by your kernels" in task_prompt(TASKS[0], briefing())


def test_a_reference_with_fences_of_its_own_stays_in_one_fence() -> None:
    import dataclasses

    fenced = dataclasses.replace(TASKS[0], source=f'"""\n```\nx\n```\n"""\n{TASKS[0].source}')
    assert "````python\n" in task_prompt(fenced, briefing())
