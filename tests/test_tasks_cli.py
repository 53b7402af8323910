"""``gym-kernel tasks``: listing, filters, prompts, checks and exports, and the rows behind the exports."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gymnasium
import pytest

from gym_kernel.cli import main
from gym_kernel.errors import ConfigurationError, TaskError
from gym_kernel.linter import Rule, lint_task
from gym_kernel.tasks import load
from gym_kernel.tasks.export import prompt_dataset, prompt_rows
from gym_kernel.tasks.task_file import parse_task

TASK_FILE = '''"""Softsign, float32."""

import torch

TASK = {
    "level": 2,
    "family": "elementwise",
    "shapes": {"wide": {"official": {"rows": 8192, "dim": 4096}, "small": {"rows": 16, "dim": 250}}},
    "flops_per_element": 3,
    "memory_gib": MEMORY,
}


class Model(torch.nn.Module):
    """``x / (1 + |x|)``."""

    def forward(self, x):
        return x / (1 + x.abs())


rows = 8192
dim = 4096


def get_inputs():
    return [torch.randn(rows, dim)]


def get_init_inputs():
    return []
'''

Output = Callable[..., str]


@pytest.fixture
def task_file(tmp_path: Path) -> str:
    path = tmp_path / "softsign.py"
    path.write_text(TASK_FILE.replace("MEMORY", "24"), encoding="utf-8")
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Output:
    """Run ``gym-kernel tasks`` and give back what it prints."""

    def tasks(*words: str, code: int = 0) -> str:
        assert main(["tasks", *words]) == code
        captured = capsys.readouterr()
        return captured.err if code == 2 else captured.out

    return tasks


def listed(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines()[1:]]


# --- listing -------------------------------------------------------------------------------------------


def test_everything_is_listed_without_a_spec(run: Output) -> None:
    assert listed(run()) == [task.id for task in load(["pilot", "core"])]


def test_columns_say_suite_level_dtype_shapes_and_title(run: Output, task_file: str) -> None:
    lines = run("relu", "rms_norm_bf16", task_file).splitlines()
    assert lines[0].split() == ["TASK", "SUITE", "LEVEL", "DTYPE", "SHAPES", "TITLE"]
    assert lines[1].split() == ["relu", "pilot/train", "1", "float32", "-", "ReLU"]
    (task,) = load("rms_norm_bf16")
    shapes = ",".join(shape.name for shape in task.shapes)
    assert lines[2].split()[:5] == [task.id, task.suite, str(task.level), "bfloat16", shapes]
    assert lines[3].split()[:5] == ["softsign", "custom", "2", "float32", "wide"]


def test_filters_narrow_the_list(run: Output) -> None:
    assert listed(run("--family", "matmul")) == [task.id for task in load("core/train/matmul")]
    assert set(listed(run("--level", "2"))) == {
        task.id for task in load(["pilot", "core"]) if task.level == 2
    }
    both = set(listed(run("--level", "1", "--level", "3", "--suite", "core/heldout")))
    assert both == {task.id for task in load("core/heldout") if task.level != 2}
    assert set(listed(run("--suite", "core/level3"))) == {task.id for task in load("core/level3")}
    assert listed(run("pilot", "--suite", "pilot/heldout")) == ["softmax", "log_softmax", "mingpt_gelu"]


def test_nothing_left_is_said(run: Output) -> None:
    assert "No task matches" in run("relu", "--family", "attention", code=2)
    assert "There is no task or suite 'relo'" in run("relo", code=2)
    assert "There is no family 'atention'. Did you mean 'attention'?" in run("--family", "atention", code=2)
    assert "There is no family 'zzzz'. Known are attention, " in run("--family", "zzzz", code=2)
    assert "There is no suite 'core/trian'. Did you mean 'core/train'" in run("--suite", "core/trian", code=2)


def test_json_holds_what_there_is_to_know(run: Output, task_file: str) -> None:
    relu, mine = json.loads(run("relu", task_file, "--json"))
    assert (relu["id"], relu["suite"], relu["shapes"]) == ("relu", "pilot/train", {})
    assert "class Model" in relu["source"]
    assert (mine["family"], mine["level"], mine["dtype"], mine["work_policy"]) == (
        "elementwise", 2, "float32", "own_kernels_only",
    )  # fmt: skip
    assert mine["shapes"]["wide"]["small"] == mine["sizes"]["small"] == {"rows": 16, "dim": 250}
    assert mine["memory_gib"] == 24


def test_actions_exclude_each_other() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["tasks", "--check", "--export", "x.jsonl"])


# --- the linter ----------------------------------------------------------------------------------------


def test_check_of_sound_tasks_ends_with_zero(run: Output, task_file: str) -> None:
    out = run("relu", task_file, "--check", "--device", "cpu")
    assert [line.split()[0] for line in out.splitlines()[:3]] == ["TASK", "relu", "softsign"]
    assert "2 of 2 tasks are sound on cpu." in out


def test_check_of_an_unsound_task_says_what_to_change_and_ends_with_one(run: Output, tmp_path: Path) -> None:
    path = tmp_path / "softsign.py"
    path.write_text(TASK_FILE.replace("MEMORY", "0.1"), encoding="utf-8")
    out = run("relu", str(path), "--check", "--device", "cpu", code=1)
    assert "error: softsign@wide: memory: An evaluation at the official sizes needs" in out
    assert "1 of 2 tasks are sound on cpu." in out
    assert "The task is not sound on cpu." in run(str(path), "--check", "--device", "cpu", code=1)
    reports = json.loads(run("relu", str(path), "--check", "--device", "cpu", "--json", code=1))
    assert [(report["id"], report["sound"]) for report in reports] == [("relu", True), ("softsign", False)]
    (finding,) = reports[1]["shapes"][0]["findings"]
    assert (finding["rule"], finding["severity"], finding["shape"]) == ("memory", "error", "wide")


def test_check_says_beforehand_that_a_task_has_no_small_sizes(
    tmp_path: Path, task_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.py"
    small = '"small": {"rows": 16, "dim": 250}'
    text = Path(task_file).read_text(encoding="utf-8")
    assert small in text
    path.write_text(
        text.replace(small, "").replace("rows = 8192\ndim = 4096", "rows = 16\ndim = 250"), encoding="utf-8"
    )
    main(["tasks", task_file, str(path), "--check", "--device", "cpu"])
    err = capsys.readouterr().err
    assert "No small sizes: large. On a CPU they run at the sizes that their modules have" in err
    main(["tasks", task_file, "--check", "--device", "cpu"])
    assert "No small sizes" not in capsys.readouterr().err


def test_check_tells_of_three_impostors_and_counts_the_rest(run: Output, tmp_path: Path) -> None:
    path = tmp_path / "zeros.py"
    text = TASK_FILE.replace("MEMORY", "24").replace("x / (1 + x.abs())", "x * 0")
    shape = '"small": {"rows": 16, "dim": 250}}'
    path.write_text(text.replace(shape, f'{shape}, "tall": {{{shape}'), encoding="utf-8")
    lines = run(str(path), "--check", "--device", "cpu", code=1).splitlines()
    told = [line for line in lines if ": null_candidate: " in line]
    assert len(told) == 4
    (report,) = json.loads(run(str(path), "--check", "--device", "cpu", "--json", code=1))
    found = sum(f["rule"] == "null_candidate" for shape in report["shapes"] for f in shape["findings"])
    assert f"error: zeros: null_candidate: {found - 3} more like these" in told[-1]


def test_check_goes_on_after_tasks_that_end_the_process(run: Output, tmp_path: Path) -> None:
    text = TASK_FILE.replace("MEMORY", "24")
    ends = {
        "exits": "raise SystemExit(0)",
        "dies": "import os\nos._exit(0)",
        "loops": "while True:\n    pass",
    }
    for name, statement in ends.items():
        (tmp_path / f"{name}.py").write_text(f"{text}\nprint('noise')\n{statement}\n", encoding="utf-8")
    files = [str(tmp_path / f"{name}.py") for name in ends]
    words = (*files, "relu", "--check", "--device", "cpu", "--limit", "5", "--json")
    reports = json.loads(run(*words, code=1))
    assert [(each["id"], each["sound"]) for each in reports] == [
        ("exits", False), ("dies", False), ("loops", False), ("relu", True),
    ]  # fmt: skip
    assert all(each["shapes"][0]["findings"][0]["rule"] == "reference_runs" for each in reports[:3])


@pytest.mark.parametrize("limit", ["0", "-1", "inf", "nan", "soon"])
def test_limit_that_is_none_is_refused(limit: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["tasks", "relu", "--check", f"--limit={limit}"])


def test_output_that_nobody_reads_ends_quietly() -> None:
    command = f"{shlex.quote(sys.executable)} -m gym_kernel.cli tasks --json"
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as broken:
        done = subprocess.run(
            shlex.split(command), stdout=broken, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert (done.returncode, done.stderr) == (141, "")
    short = shlex.split(command.replace("--json", "relu"))
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as broken:
        done = subprocess.run(short, stdout=broken, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (141, "")


# --- prompts -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("warm_evaluator")
class TestPrompts:
    def test_prompt_is_what_the_environment_shows(self, run: Output, task_file: str) -> None:
        out = run("--prompt", task_file, "--device", "cpu")
        env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks=task_file, device="cpu")
        shown, _ = env.reset()
        env.close()
        head, _, _ = shown.partition("Eager PyTorch takes")
        assert out.startswith(head)
        assert "rows = 16, dim = 250" in head

    def test_prompt_of_a_shape_and_as_json(self, run: Output) -> None:
        row = json.loads(run("--prompt", "rms_norm_bf16@odd", "--device", "cpu", "--json"))
        assert (row["id"], row["device"], row["family"]) == ("rms_norm_bf16@odd", "cpu", "normalisation")
        assert "(rms_norm_bf16@odd)" in row["prompt"]

    def test_prompt_of_a_suite_is_refused(self, run: Output) -> None:
        assert "is a suite. Name one of its tasks: softmax" in run("--prompt", "pilot/heldout", code=2)

    def test_export_writes_a_row_for_each_task(self, run: Output, tmp_path: Path, task_file: str) -> None:
        file = tmp_path / "prompts.jsonl"
        out = run("pilot/heldout", task_file, "--export", str(file), "--device", "cpu")
        assert "Wrote 4 prompts" in out
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert [row["id"] for row in rows] == ["softmax", "log_softmax", "mingpt_gelu", "softsign"]
        for row, task in zip(rows, load(["pilot/heldout", task_file]), strict=True):
            assert set(row) == {"id", "suite", "family", "level", "prompt", "reference", "device"}
            assert (row["suite"], row["level"], row["reference"]) == (task.suite, task.level, task.source)
            assert row["device"] == "cpu"
            assert f"({task.id})" in row["prompt"]
            assert "## Contract" in row["prompt"]

    def test_export_that_fails_leaves_the_file_as_it_was(self, run: Output, tmp_path: Path) -> None:
        bad = tmp_path / "bad.py"
        bad.write_text(
            TASK_FILE.replace("MEMORY", "24").replace("return x /", "raise ValueError(0) #"), encoding="utf-8"
        )
        folder = tmp_path / "out"
        folder.mkdir()
        file = folder / "prompts.jsonl"
        words = ("--export", str(file), "--device", "cpu")
        run("relu", str(bad), *words, code=2)
        assert list(folder.iterdir()) == []
        file.write_text("before", encoding="utf-8")
        run("relu", str(bad), *words, code=2)
        assert (list(folder.iterdir()), file.read_text(encoding="utf-8")) == ([file], "before")
        run("relu", *words)
        assert json.loads(file.read_text(encoding="utf-8"))["id"] == "relu"
        assert list(folder.iterdir()) == [file]

    def test_export_to_nowhere_is_refused(self, run: Output, tmp_path: Path) -> None:
        said = run("relu", "--export", str(tmp_path / "no" / "x.jsonl"), "--device", "cpu", code=2)
        assert "Pass a file in a folder that exists" in said

    def test_dataset_has_the_rows_as_columns(self) -> None:
        pytest.importorskip("datasets")
        data = prompt_dataset(["relu", "softmax"], device="cpu")
        assert data["id"] == ["relu", "softmax"]
        assert set(data.column_names) == {"id", "suite", "family", "level", "prompt", "reference", "device"}

    def test_rows_are_made_as_they_are_asked_for(self) -> None:
        rows = prompt_rows("pilot/train", device="cpu")
        assert next(rows).id == "relu"
        rows.close()


def test_rows_are_refused_before_anything_is_started() -> None:
    with pytest.raises(TaskError, match="no task or suite"):
        prompt_rows("relo")
    with pytest.raises(ConfigurationError, match="device='tpu'"):
        prompt_rows("relu", device="tpu")


def test_dataset_without_the_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r"gym-kernel\[trl\]"):
        prompt_dataset("relu", device="cpu")


def test_page_about_tasks_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "tasks.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    files = re.findall(r"^<!-- file: (\S+) -->\n```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    for name, text in files:
        Path(name).write_text(text, encoding="utf-8")
    blocks = re.findall(r"^<!-- run -->\n```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert (len(files), len(blocks)) == (1, 5)
    exec(compile("\n".join(blocks).replace('device="auto"', 'device="cpu"'), "tasks.md", "exec"), {})
    assert lint_task(load("scaled_softsign_fp16.py")[0]).findings == ()


def test_page_about_tasks_names_every_rule_and_entry() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "tasks.md").read_text(encoding="utf-8")
    assert [rule.value for rule in Rule if f"`{rule.value}`" not in page] == []
    with pytest.raises(TaskError) as caught:
        parse_task('TASK = {"nonsense": 1}', "mine")
    known = str(caught.value).partition("known are ")[2].rstrip(".").split(", ")
    assert [entry for entry in known if f"`{entry}`" not in page] == ["template"]
