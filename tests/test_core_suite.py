"""Every task that comes with the package is sound, by the linter and by the conventions of the suite."""

from __future__ import annotations

import ast
from collections import Counter
from typing import cast

import pytest

from gym_kernel.linter import lint_task
from gym_kernel.tasks import Task, TaskScale, load
from gym_kernel.tasks.core import FAMILIES

CORE = load("core")
_NAMED_DTYPES = {"_fp16": "float16", "_bf16": "bfloat16"}


@pytest.mark.parametrize("task", load(["pilot", "core"]), ids=lambda task: task.id)
def test_task_is_sound(task: Task) -> None:
    errors = lint_task(task).errors
    assert not errors, "\n".join(f"{error.shape} {error.rule.value}: {error.message}" for error in errors)


@pytest.fixture(params=CORE, ids=lambda task: task.id)
def task(request: pytest.FixtureRequest) -> Task:
    return cast(Task, request.param)


def test_shapes_are_two_to_five_and_say_both_sizes(task: Task) -> None:
    assert 2 <= len(task.shapes) <= 5
    names = {name for shape in task.shapes for sizes in (shape.official, shape.small) for name in sizes}
    # Constants, in capitals, may be given at one scale alone.
    sizes_of = lambda sizes: {name for name in sizes if not name.isupper()}
    for shape in task.shapes:
        assert sizes_of(shape.official) == sizes_of(shape.small) == sizes_of(names)
    assert len({tuple(sorted(shape.official.items())) for shape in task.shapes}) == len(task.shapes)
    assert task.sizes_at(TaskScale.OFFICIAL) == task.shapes[0].official


def test_source_is_what_a_policy_should_read(task: Task) -> None:
    module = ast.parse(task.source)
    docstring = ast.get_docstring(module)
    assert docstring
    assert task.title == docstring.partition("\n")[0].rstrip(".")
    (model,) = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    assert ast.get_docstring(model)
    assert "TASK" not in task.source


def test_title_names_the_dtype_of_the_id(task: Task) -> None:
    for suffix, dtype in _NAMED_DTYPES.items():
        if task.id.endswith(suffix):
            assert dtype in task.title.replace("bfloat16", "" if dtype == "float16" else "bfloat16")


def test_every_family_has_tasks_and_every_level_and_split() -> None:
    families = Counter(task.family for task in CORE)
    assert set(families) == set(FAMILIES)
    assert min(families.values()) >= 5
    assert {task.level for task in CORE} == {1, 2, 3}
    assert all(task.suite == f"core/{FAMILIES[task.family]}/{task.family}" for task in CORE)


def test_titles_are_unique() -> None:
    titles = Counter(task.title for task in load(["pilot", "core"]))
    assert [title for title, count in titles.items() if count > 1] == []
