"""Tasks in files: what ``TASK`` may say, what is taken out of the source, and what is complained about."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from gym_kernel.errors import TaskError
from gym_kernel.tasks import Domain, TaskScale, Tolerance, WorkPolicy, load
from gym_kernel.tasks.task_file import parse_task, read_task_file

HEAD = '"""Twice the input.\n\nAnd some more words.\n"""\n\nimport torch\n'
BODY = """
rows = 4
dim = 8


class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x.tanh()


def get_inputs():
    return [torch.randn(rows, dim)]


def get_init_inputs():
    return []
"""


def text_with(entries: str) -> str:
    return f"{HEAD}\nTASK = {entries}\n\n{BODY}"


# --- what a file says ----------------------------------------------------------------------------------


def test_file_without_task_takes_everything_from_its_module() -> None:
    task = parse_task(HEAD + BODY, "twice")
    assert (task.id, task.suite, task.title) == ("twice", "custom", "Twice the input")
    assert task.source == HEAD + BODY
    assert (task.shapes, task.sizes, task.domains) == ((), {}, ())
    assert (task.level, task.family, task.memory_gib) == (1, "", 24.0)
    assert task.work_policy is WorkPolicy.OWN_KERNELS_ONLY
    assert not task.rows_independent


def test_module_without_docstring_is_titled_by_its_id() -> None:
    assert parse_task(BODY, "twice").title == "twice"


def test_every_entry_is_read() -> None:
    task = parse_task(
        text_with(
            """{
    "id": "double", "suite": "mine/train", "title": "Double", "family": "elementwise", "level": 2,
    "shapes": {"wide": {"official": {"rows": 64}, "small": {"rows": 2, "dim": 5}}, "as_is": {}},
    "domains": ["any", "fixed", [0, None], (-1, 1.5)],
    "tolerance": {"absolute": 1e-6, "reduction_length": 9, "reason": "Rounds twice."},
    "work_policy": "mixed", "flops_per_element": 2, "rows_independent": True, "memory_gib": 3,
    "alternatives": ["x = 1"], "template": "elementwise",
}"""
        ),
        "twice",
    )
    assert (task.id, task.suite, task.title, task.family, task.level) == (
        "double", "mine/train", "Double", "elementwise", 2,
    )  # fmt: skip
    assert task.domains == (Domain(), Domain(fixed=True), Domain(0, math.inf), Domain(-1, 1.5))
    assert task.tolerance == Tolerance(1e-6, 9, "Rounds twice.")
    assert (task.work_policy, task.flops_per_element, task.rows_independent) == (WorkPolicy.MIXED, 2.0, True)
    assert (task.memory_gib, task.alternatives, task.template) == (3.0, ("x = 1",), "elementwise")
    assert [shape.name for shape in task.shapes] == ["wide", "as_is"]


def test_first_shape_is_the_default_and_others_are_at_their_names() -> None:
    shapes = '{"a": {"official": {"rows": 64}, "small": {"rows": 2}}, "b": {"small": {"rows": 3}}}'
    task = parse_task(text_with('{"shapes": ' + shapes + "}"), "twice")
    assert task.id == "twice"
    assert task.sizes_at(TaskScale.OFFICIAL) == {"rows": 64}
    other = task.at("b")
    assert (other.id, other.base_id) == ("twice@b", "twice")
    assert (other.sizes_at(TaskScale.OFFICIAL), other.sizes_at(TaskScale.SMALL)) == ({}, {"rows": 3})
    assert other.at("a").sizes == task.sizes
    with pytest.raises(KeyError):
        task.at("c")


# --- what a policy is shown ----------------------------------------------------------------------------


@pytest.mark.parametrize("entries", ["{}", '{"level": 2}', '{\n    "level": 2,\n    "domains": ["any"],\n}'])
def test_task_literal_is_taken_out_of_the_source(entries: str) -> None:
    source = parse_task(text_with(entries), "twice").source
    assert source == HEAD + "\n" + BODY
    assert "TASK" not in source


def test_task_literal_may_stand_anywhere() -> None:
    tail = parse_task(BODY + '\nTASK = {"level": 3}\n', "twice")
    assert (tail.level, "TASK" in tail.source, "get_init_inputs" in tail.source) == (3, False, True)
    first = parse_task('TASK = {"level": 3}\n' + BODY, "twice")
    assert (first.level, first.source.strip()) == (3, BODY.strip())


def test_source_that_is_left_still_runs() -> None:
    namespace: dict[str, object] = {}
    exec(parse_task(text_with('{"level": 2}'), "twice").source, namespace)
    assert {"Model", "get_inputs", "get_init_inputs"} <= set(namespace)


# --- complaints ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ("5", "must be a dict, not int"),
        ("make()", "must be a literal dict"),
        ('{"level": 1 + 1 * n}', "must be a literal dict"),
        ('{"colour": "red", "size": 3}', "unknown entries 'colour', 'size'; known are id"),
        ('{"id": 3}', "needs a text as 'id', not 3"),
        ('{"title": None}', "needs a text as 'title'"),
        ('{"level": 4}', "needs 1, 2 or 3 as 'level', not 4"),
        ('{"level": True}', "needs 1, 2 or 3"),
        ('{"level": "2"}', "needs 1, 2 or 3"),
        ('{"flops_per_element": -1}', "finite number, 0 or more, as 'flops_per_element'"),
        ('{"flops_per_element": 1e999}', "finite number"),
        ('{"memory_gib": "24"}', "as 'memory_gib', not '24'"),
        ('{"memory_gib": True}', "as 'memory_gib'"),
        ('{"rows_independent": 1}', "needs True or False"),
        ('{"work_policy": "anything"}', "needs 'own_kernels_only' or 'mixed'"),
        ('{"work_policy": ["mixed"]}', "as 'work_policy'"),
        ('{"alternatives": "x"}', "list of texts as 'alternatives'"),
        ('{"alternatives": [1]}', "list of texts as 'alternatives'"),
        ('{"tolerance": 1e-3}', "absolute, reason, reduction_length"),
        ('{"tolerance": {"relative": 1}}', "as 'tolerance'"),
        ('{"tolerance": {"absolute": 1e-3}}', "must say why"),
        ('{"domains": "any"}', "needs a list with one entry"),
        ('{"domains": ["some"]}', "has the domain 'some'"),
        ('{"domains": [[1]]}', "has the domain"),
        ('{"domains": [["a", "b"]]}', "has the domain"),
        ('{"shapes": ["wide"]}', "needs a dict such as"),
        ('{"shapes": {"a b": {}}}', "has a shape 'a b'"),
        ('{"shapes": {1: {}}}', "has a shape 1"),
        ('{"shapes": {"a": {"tiny": {}}}}', "is not of the form"),
        ('{"shapes": {"a": {"small": ["rows"]}}}', "sizes that are no dict"),
        ('{"shapes": {"a": {"small": {3: 4}}}}', "sizes that are no dict"),
    ],
)
def test_entry_that_cannot_be_used_is_refused_by_name(entries: str, says: str) -> None:
    with pytest.raises(TaskError) as caught:
        parse_task(text_with(entries), "twice")
    assert says in str(caught.value)
    assert "twice" in str(caught.value)


@pytest.mark.parametrize("text", ["def (:\n", "x = '\0'"])
def test_text_that_is_no_python_is_refused(text: str) -> None:
    with pytest.raises(TaskError, match="'twice' is not valid Python"):
        parse_task(text, "twice")


def test_two_task_literals_are_refused() -> None:
    with pytest.raises(TaskError, match="2 times; once is enough"):
        parse_task(text_with("{}") + "\nTASK = {}\n", "twice")


# --- files ---------------------------------------------------------------------------------------------


def test_file_is_named_like_its_task(tmp_path: Path) -> None:
    path = tmp_path / "twice.py"
    path.write_text(text_with('{"level": 2}'), encoding="utf-8")
    assert read_task_file(path, suite="mine").suite == "mine"
    (task,) = load(str(path))
    assert (task.id, task.suite, task.level) == ("twice", "custom", 2)
    assert [each.id for each in load(["relu", str(path)])] == ["relu", "twice"]


def test_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"nowhere\.py' cannot be read"):
        load(str(tmp_path / "nowhere.py"))
    (tmp_path / "latin.py").write_bytes(b"# \xff\n")
    with pytest.raises(TaskError, match="cannot be read"):
        load(str(tmp_path / "latin.py"))


def test_file_without_the_contract_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.py"
    path.write_text(text_with("{}").replace("class Model", "class Net"), encoding="utf-8")
    with pytest.raises(TaskError, match="has no Model"):
        load(str(path))


def test_size_of_a_shape_must_be_one_of_the_module(tmp_path: Path) -> None:
    path = tmp_path / "twice.py"
    path.write_text(text_with('{"shapes": {"a": {"small": {"columns": 3}}}}'), encoding="utf-8")
    with pytest.raises(TaskError, match="sets the size 'columns' at scale 'small'"):
        load(str(path))
