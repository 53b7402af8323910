"""The two long benchmarks over suites, end to end on the CPU: rows, parts, joining them, exit codes."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import core_table, kernelbench_table
from benchmarks.suite_rows import Part, merged, read_part
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.tasks import load

ROOT = Path(__file__).parents[1]
_LIMIT_S = 120.0

# In the layout of KernelBench: a class, sizes at module level, get_inputs and get_init_inputs.
_PROBLEMS = {
    "level1/1_Cubed.py": '''
import torch
import torch.nn as nn


class Model(nn.Module):
    """The third power of every element."""

    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x):
        return torch.pow(x, 3.0)


batch_size = 64
dim = 96


def get_inputs():
    return [torch.randn(batch_size, dim)]


def get_init_inputs():
    return []
''',
    "level2/2_Linear_Softsign.py": '''
import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear layer, then softsign."""

    def __init__(self, in_features, out_features):
        super(Model, self).__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return nn.functional.softsign(self.linear(x))


batch_size = 32
in_features = 64
out_features = 48


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
''',
    "level2/3_Refuses.py": '''
import torch
import torch.nn as nn


class Model(nn.Module):
    """Fails whenever it is called."""

    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x):
        raise ValueError("no")


batch_size = 32
dim = 64


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
''',
}

_UNSOUND_TASK = '''"""Copy of a tensor, float32."""

import torch
from torch import nn

TASK = {"domains": ["any"], "rows_independent": True}


class Model(nn.Module):
    """``x``."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clone()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(16, 128)]


def get_init_inputs() -> list[object]:
    return []
'''


@pytest.fixture(scope="module", autouse=True)
def _host() -> Iterator[None]:
    """One host for the whole file: evaluators of a process share it."""
    evaluator = Evaluator(EvaluatorConfig(device="cpu"))
    evaluator.start()
    yield
    evaluator.close()


Main = Callable[[Sequence[str]], None]


def _run(main: Main, *arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int), ended.value
    return ended.value.code


def test_core_table_of_two_parts_joins_to_the_suites_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("moe_top2_routing@odd", "relu", "max_pool2d")
    common = ("--device", "cpu", "--only", *names, "--out", tmp_path)
    assert _run(core_table.main, *common, "--part", "1/2") == 0
    command = [sys.executable, "-m", "benchmarks.core_table", *map(str, common), "--part", "2/2"]
    second = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=_LIMIT_S)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "1 of 1 task-shapes are sound" in second.stdout
    parts = sorted(tmp_path.glob("core-part*.json"))
    assert [path.name for path in parts] == ["core-part1of2-cpu.json", "core-part2of2-cpu.json"]
    assert [row["id"] for row in read_part(parts[1])["rows"]] == ["relu"]

    assert _run(core_table.main, "--merge", *parts, "--out", tmp_path, "--markdown") == 0
    rows = read_part(tmp_path / "core-cpu.json")["rows"]
    pools = ["max_pool2d@resnet_stem", "max_pool2d@late", "max_pool2d@odd"]
    assert [row["id"] for row in rows] == ["relu", *pools, "moe_top2_routing@odd"]
    for row in rows:
        assert (row["finished"], row["sound"], row["errors"], row["infrastructure_errors"]) == (
            True,
            True,
            [],
            [],
        )
        assert 0 < row["t_min_us"] <= row["eager_us"]
        assert min(row["bytes"], row["impostors_tried"], row["memory_gib"]) > 0
        assert row["impostors_passed"] == []
        assert len(row["kinds_used"]) >= 6
    assert (rows[-1]["input_dtypes"], rows[-1]["output_dtypes"]) == (["float32"], ["float32", "int32"])
    table = core_table.as_markdown(rows)
    assert table in capsys.readouterr().out
    assert "| moe_top2_routing | odd | transformer | float32 to int32 | 0 | 0 |" in table


def test_core_table_says_which_impostor_passes_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = tmp_path / "copy_fp32.py"
    task.write_text(_UNSOUND_TASK)
    assert _run(core_table.main, "--device", "cpu", "--only", task, "--out", tmp_path) == 1
    said = capsys.readouterr().out
    assert (
        said.count("ERROR copy_fp32: null_candidate: The output is reproduced by input 0 on every kind") == 1
    )
    (row,) = read_part(tmp_path / "core-cpu.json")["rows"]
    assert not row["sound"]
    assert "input 0" in row["impostors_passed"]
    assert row["finished"]
    assert row["infrastructure_errors"] == []


def test_core_table_begins_nothing_after_its_limit(tmp_path: Path) -> None:
    arguments = ("--device", "cpu", "--only", "relu", "tanh", "--limit", 0, "--out", tmp_path)
    assert _run(core_table.main, *arguments) == 1
    report = json.loads((tmp_path / "core-cpu.json").read_text())
    assert report["rows"] == []
    assert report["not_begun"] == ["relu", "tanh"]


def test_a_floor_above_the_eager_time_is_unsound() -> None:
    (line,) = core_table.lines_of(load("relu"))
    run = core_table.Run("cpu", 60.0)
    try:
        answers = [each.is_finished for each in run.answers([line], 60.0)]
    finally:
        run.close()
    assert answers[-1]
    assert line.row()["sound"]
    briefing = line.briefing
    assert briefing is not None
    roofline = replace(briefing.roofline, t_min_us=2 * briefing.reference.median_us)
    above = replace(line, briefing=replace(briefing, roofline=roofline))
    assert not above.row()["sound"]
    assert above.row()["floor_above_eager"]
    assert "FLOOR ABOVE EAGER" in above.complaints[0]


@pytest.fixture
def kernelbench(tmp_path: Path) -> Path:
    for name, source in _PROBLEMS.items():
        file = tmp_path / "checkout" / "KernelBench" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source.lstrip())
    return tmp_path / "checkout"


def test_kernelbench_references_are_refused_as_submissions(
    kernelbench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ("--device", "cpu", "--kernelbench", kernelbench, "--number", 1, 2, "--out", tmp_path)
    assert _run(kernelbench_table.main, *common, "--part", "1/2") == 0
    first = tmp_path / "kernelbench-part1of2-cpu.json"
    assert _run(kernelbench_table.main, *common, "--without", first, "--out", tmp_path / "rest") == 0
    parts = [first, tmp_path / "rest" / "kernelbench-cpu.json"]
    assert [len(read_part(part)["rows"]) for part in parts] == [1, 1]
    capsys.readouterr()
    assert _run(kernelbench_table.main, "--merge", *parts, "--out", tmp_path, "--markdown") == 0
    rows = read_part(tmp_path / "kernelbench-cpu.json")["rows"]
    assert [(row["level"], row["number"], row["status"]) for row in rows] == [
        (1, 1, "cheating"),
        (2, 2, "cheating"),
    ]
    for row in rows:
        assert row["cheat"] == "borrowed_work"
        assert min(row["t_min_us"], row["eager_us"], row["seconds"]) > 0
        assert row["unsound"] == ""
    said = capsys.readouterr().out
    assert "| 2/2_Linear_Softsign | cheating: borrowed_work | - |" in said
    assert "level 2: 1 problems, 1 cheating" in said


def test_kernelbench_table_fails_where_the_judge_has_no_answer(
    kernelbench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ("--device", "cpu", "--kernelbench", kernelbench, "--level", 2, "--out", tmp_path)
    assert _run(kernelbench_table.main, *common) == 1
    assert "kernelbench/level2/3 3_Refuses: INFRASTRUCTURE:" in capsys.readouterr().out
    rows = read_part(tmp_path / "kernelbench-cpu.json")["rows"]
    assert [row["status"] for row in rows] == ["cheating", "infrastructure_error"]
    assert "ValueError: no" in rows[1]["note"]


def _report(device: str, *rows: tuple[str, int, bool], table: str = "core") -> dict[str, Any]:
    return {
        "table": table,
        "device": {"name": device},
        "commit": "abc",
        "not_begun": ["b"],
        "rows": [{"id": name, "position": place, "finished": whole} for name, place, whole in rows],
    }


def test_joining_keeps_finished_rows_and_refuses_other_devices() -> None:
    joined = merged([_report("X", ("b", 2, True), ("a", 1, True)), _report("X", ("b", 2, False))])
    assert [(row["id"], row["finished"]) for row in joined["rows"]] == [("a", True), ("b", True)]
    assert joined["not_begun"] == []
    with pytest.raises(SystemExit, match="differ in device: X, Y"):
        merged([_report("X"), _report("Y")])
    with pytest.raises(SystemExit, match="differ in table"):
        merged([_report("X"), _report("X", table="kernelbench")])


def test_parts_share_everything_between_them() -> None:
    items = list(range(7))
    assert sorted(Part.parse("1/2").of(items) + Part.parse("2/2").of(items)) == items
    assert Part().of(items) == items


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/0", ""])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a part"):
        Part.parse(text)


def test_a_file_that_is_no_report_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    with pytest.raises(SystemExit, match="is no report of this benchmark"):
        read_part(path)
