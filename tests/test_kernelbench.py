"""KernelBench's problems as tasks, on a small checkout of the tests' own; the real one where the user names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gym_kernel.errors import TaskError
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.submission import Submission
from gym_kernel.tasks import Task, TaskScale, load
from gym_kernel.tasks.kernelbench import REVISION, KernelBenchMismatch, UnsoundLeftOut

ROOT = Path(__file__).resolve().parents[1]
KERNELBENCH = os.environ.get("GYM_KERNEL_KERNELBENCH")

HEAD = "import torch\nimport torch.nn as nn\n\n\n"
TAIL = "\n\ndef get_init_inputs():\n    return []\n"
RELU = (
    HEAD
    + '''class Model(nn.Module):
    """Simple model that clips at zero."""

    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


batch_size = 4096
dim = 393216


def get_inputs():
    x = torch.rand(batch_size, dim)
    return [x]
'''
    + TAIL
)
MATMUL = (
    HEAD
    + """class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


M = 1024 * 2
K = 4096
N = K


def get_inputs():
    A = torch.rand(M, K)
    B = torch.rand(K, N)
    return [A, B]
"""
    + TAIL
)
FORGETFUL = (
    HEAD
    + """class Model(nn.Module):
    def forward(self, x):
        return x.amax(dim=1, keepdim=True) * 0


batch_size = 128


def get_inputs():
    return [torch.rand(batch_size, 64)]
"""
    + TAIL
)
WITH_BIAS = (
    HEAD
    + """class Model(nn.Module):
    def __init__(self, channels, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return self.conv(x) + self.bias


batch_size = 64
channels = 64
height = width = 128
bias_shape = (channels, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, bias_shape]
"""
)


def problem(forward: str, inputs: str, sizes: str = "batch_size = 4096\ndim = 4096") -> str:
    return (
        f"{HEAD}class Model(nn.Module):\n    def forward(self, x, y=None):\n        return {forward}\n\n\n{sizes}\n\n\n"
        f"def get_inputs():\n    return [{inputs}]\n{TAIL}"
    )


PROBLEMS = {
    (1, "1_Matmul_square_"): MATMUL,
    (1, "19_ReLU"): RELU,
    (2, "17_Conv2d_BiasAdd"): WITH_BIAS,
    (2, "80_Gemm_Max_Subtract_GELU"): FORGETFUL,
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for (level, name), source in PROBLEMS.items():
        folder = tmp_path / "KernelBench" / f"level{level}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(source)
    (tmp_path / "KernelBench" / "changelog").mkdir()
    (tmp_path / "README.md").write_text("KernelBench")
    return tmp_path


@pytest.fixture
def quiet() -> Iterator[None]:
    """The problems of these tests are not those of the pinned revision, and one is in an unsound one's place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelBenchMismatch)
        warnings.simplefilter("ignore", UnsoundLeftOut)
        yield


def ids(spec: Any, path: Path) -> list[str]:
    return [task.id for task in load(spec, kernelbench=path)]


def one(tmp_path: Path, source: str, level: int = 1) -> Task:
    folder = tmp_path / f"level{level}"
    folder.mkdir(exist_ok=True)
    (folder / "7_Any_problem_.py").write_text(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelBenchMismatch)
        (task,) = load(f"kernelbench/level{level}/7", kernelbench=tmp_path)
    return task


# --- what a spec may look like -------------------------------------------------------------------------

LEVEL_1 = ["kb_level1_1_matmul_square", "kb_level1_19_relu"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("kernelbench/level1", LEVEL_1),
        ("KernelBench/level1/", LEVEL_1),
        ("kernelbench/level2", ["kb_level2_17_conv2d_biasadd"]),
        ("kernelbench", [*LEVEL_1, "kb_level2_17_conv2d_biasadd"]),
        ("kernelbench/level1/19", ["kb_level1_19_relu"]),
        ("kernelbench/level1/19_ReLU", ["kb_level1_19_relu"]),
        ("kernelbench/19_relu", ["kb_level1_19_relu"]),
        ("kb_level1_19_relu", ["kb_level1_19_relu"]),
        (
            ["kernelbench/level2/17", "relu", "kernelbench/level1/1"],
            ["kb_level2_17_conv2d_biasadd", "relu", LEVEL_1[0]],
        ),
        (
            "kernelbench/level2+unsound",
            ["kb_level2_17_conv2d_biasadd", "kb_level2_80_gemm_max_subtract_gelu"],
        ),
        ("kernelbench/level2/80+unsound", ["kb_level2_80_gemm_max_subtract_gelu"]),
    ],
)
@pytest.mark.usefixtures("quiet")
def test_forms_of_a_spec(spec: Any, expected: list[str], checkout: Path) -> None:
    assert ids(spec, checkout) == expected
    assert ids(spec, checkout / "KernelBench") == expected


@pytest.mark.usefixtures("quiet")
def test_a_task_shows_the_problem_as_it_is(checkout: Path) -> None:
    (task,) = load("kernelbench/level1/19", kernelbench=checkout)
    assert task.source == RELU
    assert task.title == "ReLU"
    assert task.suite == "kernelbench/level1"
    assert task.sizes_at(TaskScale.OFFICIAL) == {}


@pytest.mark.usefixtures("quiet")
def test_a_loaded_task_can_be_handed_on(checkout: Path) -> None:
    tasks = load("kernelbench", kernelbench=checkout)
    assert load(tasks) == tasks


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("kernelbench/level3", r"kernelbench/level1, kernelbench/level2"),
        ("kernelbench/level1/77", r"no KernelBench problem.*kernelbench/level1/19"),
        ("kernelbench/level1/19_Relo", r"Did you mean '19_ReLU'"),
        ("kernelbench/19", r"which level"),
        ("kernelbench/level1/19/extra", r"not the name"),
        (
            "kernelbench/level2/80",
            r"unsound.*output is 0 whatever the input.*'kernelbench/level2/80\+unsound'",
        ),
    ],
)
@pytest.mark.usefixtures("quiet")
def test_a_spec_that_leads_nowhere_says_where_to_go(spec: str, message: str, checkout: Path) -> None:
    with pytest.raises(TaskError, match=message):
        load(spec, kernelbench=checkout)


def test_without_a_path_the_error_says_how_to_get_one() -> None:
    with pytest.raises(
        TaskError, match=rf"(?s)git clone https://github.com.*checkout {REVISION}.*kernelbench="
    ):
        load("kernelbench/level1")


@pytest.mark.parametrize("name", ["missing", "empty", "text.txt"])
def test_a_path_without_kernelbench_says_how_to_get_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("?")
    with pytest.raises(TaskError, match="git clone"):
        load("kernelbench/level1", kernelbench=tmp_path / name)


@pytest.mark.usefixtures("quiet")
def test_a_problem_that_breaks_the_contract_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="has no Model"):
        one(tmp_path, RELU.replace("class Model", "class Net").replace("super(Model, self)", "super()"))


# --- data files ----------------------------------------------------------------------------------------


def rows() -> list[dict[str, Any]]:
    return [
        {"code": source, "level": level, "name": name, "problem_id": int(name.partition("_")[0])}
        for (level, name), source in PROBLEMS.items()
    ]


@pytest.mark.usefixtures("quiet")
def test_jsonl_gives_the_tasks_of_a_checkout(checkout: Path, tmp_path: Path) -> None:
    file = tmp_path / "problems.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    assert load("kernelbench+unsound", kernelbench=file) == load("kernelbench+unsound", kernelbench=checkout)


@pytest.mark.usefixtures("quiet")
def test_parquet_gives_the_tasks_of_a_checkout(checkout: Path, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "problems.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows()), file)
    assert load("kernelbench+unsound", kernelbench=file) == load("kernelbench+unsound", kernelbench=checkout)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", "{", "cannot be read as JSON"),
        ("a.json", "{}", "a list of problems"),
        ("a.jsonl", '{"code": "x", "level": 1}', "lacks one of the columns"),
        ("a.jsonl", '{"code": "x", "level": 9, "name": "1_A", "problem_id": 1}', "level 9"),
        ("a.parquet", "not Parquet", "cannot be read as Parquet"),
    ],
)
def test_a_broken_data_file_is_refused(name: str, text: str, message: str, tmp_path: Path) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_text(text)
    with pytest.raises(TaskError, match=message):
        load("kernelbench/level1", kernelbench=tmp_path / name)


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    assert "torch.relu" in one(tmp_path, RELU).source
    assert "torch.tanh" in one(tmp_path, RELU.replace("torch.relu", "torch.tanh")).source


# --- the pinned revision and unsound problems ----------------------------------------------------------


def test_problems_that_differ_from_the_pinned_ones_are_named(checkout: Path) -> None:
    with pytest.warns(KernelBenchMismatch, match=rf"{REVISION[:12]}.*level1/19_ReLU"):
        load("kernelbench/level1/19", kernelbench=checkout)


@pytest.mark.filterwarnings("ignore::gym_kernel.tasks.kernelbench.KernelBenchMismatch")
def test_unsound_problems_are_left_out_of_a_suite_and_named(checkout: Path) -> None:
    with pytest.warns(UnsoundLeftOut, match=r"level2/80.*\+unsound"):
        load("kernelbench/level2", kernelbench=checkout)


# --- what is inferred ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "fixed"),
    [
        (RELU, [False]),
        (MATMUL, [False, False]),
        (WITH_BIAS, [False]),
        (problem("torch.cumprod(x, dim=1)", "torch.rand(batch_size, dim)"), [True]),
        (problem("torch.log(x)", "torch.rand(batch_size, dim)"), [True]),
        (problem("torch.log(torch.exp(x) + 1)", "torch.rand(batch_size, dim)"), [False]),
        (problem("x ** 0.5", "torch.rand(batch_size, dim)"), [True]),
        (problem("x / torch.sqrt(x ** 2 + 1)", "torch.rand(batch_size, dim)"), [False]),
        (problem("torch.some_new_function(x)", "torch.rand(batch_size, dim)"), [True]),
        (
            problem("torch.matmul(x, y)", "torch.rand(dim, dim), torch.tril(torch.rand(dim, dim))"),
            [False, True],
        ),
        (
            problem(
                "nn.functional.cross_entropy(x, y)",
                "torch.rand(batch_size, dim), torch.randint(0, dim, (batch_size,))",
            ),
            [False, True],
        ),
        (problem("x * y", "torch.rand(batch_size, dim) * 2 - 1, 3.14"), [False]),
    ],
)
def test_inputs_keep_their_distribution_where_a_domain_cannot_be_inferred(
    source: str, fixed: list[bool], tmp_path: Path
) -> None:
    assert [domain.fixed for domain in one(tmp_path, source).domains] == fixed


def test_elementwise_and_reducing_problems_are_told_apart(tmp_path: Path) -> None:
    relu, matmul = one(tmp_path, RELU), one(tmp_path, MATMUL)
    assert relu.rows_independent
    assert relu.tolerance.reduction_length == 1
    assert not matmul.rows_independent
    assert matmul.tolerance.reduction_length >= 4096


def small(task: Task) -> dict[str, int]:
    return task.sizes_at(TaskScale.SMALL)


def test_an_unknown_problem_has_its_batch_made_smaller_and_nothing_else(tmp_path: Path) -> None:
    sizes = small(one(tmp_path, RELU))
    assert set(sizes) == {"batch_size"}
    assert sizes["batch_size"] < 4096


def test_sizes_that_something_else_was_made_of_stay(tmp_path: Path) -> None:
    source = WITH_BIAS.replace("bias_shape = (channels, 1, 1)", "bias_shape = (batch_size, 1, 1)")
    assert small(one(tmp_path, source)) == {}


def test_loading_needs_no_torch(checkout: Path) -> None:
    code = (
        "import sys, warnings; warnings.simplefilter('ignore'); from gym_kernel.tasks import load; "
        f"load('kernelbench', kernelbench={str(checkout)!r}); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "False", done.stderr


# --- judged --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    opened = Evaluator(EvaluatorConfig(device="cpu"))
    yield opened
    opened.close()


def test_a_problem_is_judged_like_any_task(evaluator: Evaluator, tmp_path: Path) -> None:
    task = one(tmp_path, RELU.replace("dim = 393216", "dim = 1000"))
    kernel = (ROOT / "examples" / "kernels" / "relu.py").read_text()
    assert evaluator.evaluate(Submission(task, kernel)).status is Status.CORRECT
    wrapped = RELU.replace("class Model(", "class ModelNew(").replace("super(Model, self)", "super()")
    verdict = evaluator.evaluate(Submission(task, wrapped))
    assert verdict.status is Status.CHEATING, verdict.reason
    zeros = (
        HEAD + "class ModelNew(nn.Module):\n    def forward(self, x):\n        return torch.zeros_like(x)\n"
    )
    assert evaluator.evaluate(Submission(task, zeros)).status is not Status.CORRECT


# --- the real KernelBench ------------------------------------------------------------------------------

needs_kernelbench = pytest.mark.skipif(
    not KERNELBENCH, reason="GYM_KERNEL_KERNELBENCH names no checkout of KernelBench"
)


@needs_kernelbench
def test_all_270_problems_load_and_are_those_of_the_pinned_revision() -> None:
    assert KERNELBENCH
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tasks = load("kernelbench+unsound", kernelbench=KERNELBENCH)
    by_suite = [sum(task.suite == f"kernelbench/level{level}" for task in tasks) for level in (1, 2, 3, 4)]
    assert by_suite == [100, 100, 50, 20]
    assert len({task.id for task in tasks}) == 270
    folder = Path(KERNELBENCH)
    folder = folder / "KernelBench" if (folder / "KernelBench").is_dir() else folder
    assert {task.source for task in tasks} == {file.read_text() for file in folder.glob("level*/*.py")}


@needs_kernelbench
def test_unsound_problems_are_left_out_of_the_real_suites() -> None:
    with pytest.warns(UnsoundLeftOut):
        sound = load("kernelbench", kernelbench=KERNELBENCH)
    names = {task.id for task in sound}
    assert "kb_level1_19_relu" in names
    assert "kb_level2_80_gemm_max_subtract_gelu" not in names
    assert len(names) > 240


@needs_kernelbench
@pytest.mark.parametrize("spec", ["kernelbench/level1/19", "kernelbench/level2/63", "kernelbench/level3/31"])
def test_surveyed_problems_run_at_their_small_sizes(spec: str, evaluator: Evaluator) -> None:
    (task,) = load(spec, kernelbench=KERNELBENCH)
    briefing = evaluator.brief(task)
    assert all(size <= 1 << 17 for size in map(_elements, briefing.inputs))


def _elements(tensor: Any) -> int:
    total = 1
    for size in tensor.shape:
        total *= size
    return total
