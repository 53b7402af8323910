"""Tasks in files: what ``TASK`` may say, what is taken out of the source, and what is complained about."""

from __future__ import annotations

import math
import re
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


def test_annotated_task_is_read_and_taken_out() -> None:
    task = parse_task(text_with('{"level": 2}').replace("TASK =", "TASK: dict ="), "twice")
    assert (task.level, task.source) == (2, HEAD + "\n" + BODY)


@pytest.mark.parametrize("odd", ["\f", "\x0b", "\x1c", "\x85", "\u2028", "\u2029"])
def test_lines_are_those_of_python(odd: str) -> None:
    head = HEAD.replace("more words", f"more{odd} words{odd}")
    assert parse_task(text_with("{}").replace(HEAD, head), "twice").source == head + "\n" + BODY


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_ends_of_other_systems_are_made_plain(ending: str) -> None:
    text = text_with('{\n    "level": 2,\n}')
    assert parse_task(text.replace("\n", ending), "twice") == parse_task(text, "twice")


# --- complaints ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ("5", "must be a dict, not int"),
        ("make()", "must be a literal dict. Only literals are read"),
        ("make()", "or other expressions (there is one on line 8)."),
        ('{"level": 1 + 1 * n}', "must be a literal dict"),
        ('{"colour": "red", "size": 3}', "unknown entries 'colour', 'size'; known are id"),
        ('{"shape": {}}', "has an unknown entry 'shape' (did you mean 'shapes'?); known are id"),
        (
            '{"flops": 3, "Level": 1}',
            "'flops' (did you mean 'flops_per_element'?), 'Level' (did you mean 'level'?)",
        ),
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
        ('{"tolerance": 1e-3}', "absolute, cap, reason, reduction_length"),
        ('{"tolerance": {"relative": 1}}', "as 'tolerance'"),
        ('{"tolerance": {"absolute": 1e-3}}', 'must say why: add a "reason" to its tolerance'),
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
    assert " object at 0x" not in str(caught.value)
    assert ".." not in str(caught.value)


HUGE = "0x" + "f" * 5000


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (
            '{"tolerance": {"reduction_length": "a"}}',
            "whole number as 'reduction_length' of its tolerance, not 'a'",
        ),
        ('{"tolerance": {"reduction_length": None}}', "not None"),
        ('{"tolerance": {"reduction_length": 1e999}}', "not inf"),
        ('{"tolerance": {"absolute": "x", "reason": "Why."}}', "as 'absolute' of its tolerance, not 'x'"),
        ('{"tolerance": {"absolute": [1], "reason": "Why."}}', "not [1]"),
        ('{"tolerance": {"reason": 5}}', "a text as 'reason' of its tolerance, not 5"),
        ('{"memory_gib": 1' + "0" * 400 + "}", "as 'memory_gib', not 1000"),
        ('{"memory_gib": ' + HUGE + "}", "type int that is too long to show"),
        ('{"level": ' + HUGE + "}", "type int that is too long to show"),
        ('{"id": [' + HUGE + "]}", "type list that is too long to show"),
        ('{"domains": [[0, ' + HUGE + "]]}", "has the domain a value"),
        ('{"shapes": {' + HUGE + ": {}}}", "has a shape a value"),
        ("{" + HUGE + ": 1}", "unknown entry a value"),
        ('{"level": ' + "[" * 90 + "]" * 90 + "}", "needs 1, 2 or 3"),
        ('{"title": "\\ud800"}', "surrogate"),
    ],
)
def test_value_of_a_wrong_kind_is_a_complaint_and_no_accident(entries: str, says: str) -> None:
    with pytest.raises(TaskError) as caught:
        parse_task(text_with(entries), "twice")
    assert says in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("depth", [250, 100_000])
def test_source_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    with pytest.raises(TaskError, match=r"'twice' is (nested too deeply|not valid Python)"):
        parse_task(BODY + "y = " + "(" * depth + ")" * depth, "twice")
    with pytest.raises(TaskError, match=r"'twice' is (nested too deeply|not valid Python)"):
        parse_task(BODY + "y = " + "-" * 100_000 + "1", "twice")


@pytest.mark.parametrize("task_id", ["../../x", "a\\nb", " relu ", "r\\ud800", "", "..", "a@b", "a/b"])
def test_id_that_names_no_file_is_refused(task_id: str) -> None:
    with pytest.raises(TaskError, match=r"letters, digits|surrogate"):
        parse_task(text_with(f'{{"id": "{task_id}"}}'), "twice")
    with pytest.raises(TaskError, match="letters, digits"):
        parse_task(BODY, "my task")


@pytest.mark.parametrize(
    "line", ["import math; TASK = {}", "TASK = {}; import math", "TASK = {\n}; import math"]
)
def test_task_that_shares_its_lines_is_refused(line: str) -> None:
    with pytest.raises(TaskError, match="on lines of its own"):
        parse_task(line + "\n" + BODY, "twice")


@pytest.mark.parametrize(
    "line",
    ["TASK |= {}", 'TASK["level"] = 2', "del TASK", "level = TASK", "TASK, x = {}, 1", "x = TASK = {}", "TASK: dict",
     "if True:\n    TASK = {}", "import math as TASK", "def TASK():\n    pass", "for TASK in []:\n    pass"],
)  # fmt: skip
@pytest.mark.parametrize("declared", ["{}", None])
def test_other_use_of_the_name_is_refused(line: str, declared: str | None) -> None:
    with pytest.raises(TaskError, match="uses the name TASK at line"):
        parse_task((HEAD + BODY if declared is None else text_with(declared)) + "\n" + line + "\n", "twice")


@pytest.mark.parametrize("text", ["def (:\n", "x = '\0'"])
def test_text_that_is_no_python_is_refused(text: str) -> None:
    with pytest.raises(TaskError, match="'twice' is not valid Python"):
        parse_task(text, "twice")
    with pytest.raises(TaskError, match=r"'twice' is not valid Python: .*, line 2\. "):
        parse_task("x = 1\ndef (:\n", "twice")


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
    with pytest.raises(
        TaskError, match=r"nowhere\.py' cannot be read: No such file or directory\. Pass the path"
    ):
        load(str(tmp_path / "nowhere.py"))
    with pytest.raises(TaskError, match="cannot be read: embedded null"):
        load("a\0.py")
    (tmp_path / "latin.py").write_bytes(b"# \xff\n")
    with pytest.raises(TaskError, match="cannot be read"):
        load(str(tmp_path / "latin.py"))


@pytest.mark.parametrize("entries", ["make()", '{"level": 4}', '{"tolerance": {"absolute": 1}}', "("])
def test_complaints_name_the_file_by_its_path(tmp_path: Path, entries: str) -> None:
    path = tmp_path / "twice.py"
    path.write_text(text_with(entries), encoding="utf-8")
    with pytest.raises(TaskError) as caught:
        load(str(path))
    assert repr(str(path)) in str(caught.value)


def test_file_without_the_contract_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.py"
    path.write_text(text_with("{}").replace("class Model", "class Net"), encoding="utf-8")
    with pytest.raises(TaskError, match=rf"^{re.escape(str(path))}: .* has no Model"):
        load(str(path))


def test_size_of_a_shape_must_be_one_of_the_module(tmp_path: Path) -> None:
    path = tmp_path / "twice.py"
    path.write_text(text_with('{"shapes": {"a": {"small": {"columns": 3}}}}'), encoding="utf-8")
    with pytest.raises(TaskError, match="sets the size 'columns' at scale 'small'"):
        load(str(path))
