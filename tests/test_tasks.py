"""Loading tasks, and the reference modules that come with the package."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from gymnasium.envs.registration import EnvSpec

from gym_kernel.errors import ConfigurationError, TaskError
from gym_kernel.tasks import Domain, Task, TaskScale, Tolerance, load, suite_names
from gym_kernel.tasks.suites import suite_task_ids
from gym_kernel.tasks.task import Shape

ROOT = Path(__file__).resolve().parents[1]

SOURCE = """
import torch

N = 16
M: int = N * 2
ratio = 0.5


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.rand(N, M)]


def get_init_inputs():
    return []
"""


def make_task(**changes: Any) -> Task:
    return dataclasses.replace(Task(id="mine", suite="custom", title="Mine", source=SOURCE), **changes)


def ids(spec: Any) -> list[str]:
    return [task.id for task in load(spec)]


# --- loading -------------------------------------------------------------------------------------------


def test_pilot_is_its_three_groups_in_order() -> None:
    assert ids("pilot") == ids(["pilot/train", "pilot/reserved", "pilot/heldout"])
    assert ids("pilot/train") == ["relu", "leaky_relu", "sigmoid", "tanh"]
    assert ids("pilot/heldout") == ["softmax", "log_softmax", "mingpt_gelu"]


@pytest.mark.parametrize("suite", suite_names())
def test_every_suite_loads_its_own_tasks(suite: str) -> None:
    tasks = load(suite)
    assert tuple(task.id for task in tasks) == suite_task_ids(suite)
    if suite.startswith("core/level"):
        assert all(task.suite.startswith("core/") and suite == f"core/level{task.level}" for task in tasks)
    else:
        assert all(task.suite == suite or task.suite.startswith(suite + "/") for task in tasks)


def test_core_is_its_splits_and_its_levels() -> None:
    assert ids("core") == ids(["core/train", "core/reserved", "core/heldout"])
    assert sorted(ids("core")) == sorted(ids(["core/level1", "core/level2", "core/level3"]))
    assert not set(ids("core")) & set(ids("pilot"))


def test_shape_of_a_task_is_named_after_an_at_sign() -> None:
    (task,) = load("rms_norm_bf16")
    for shape in task.shapes:
        (named,) = load(f"rms_norm_bf16@{shape.name}")
        assert (named.id, named.base_id) == (f"rms_norm_bf16@{shape.name}", "rms_norm_bf16")
        assert named.sizes_at(TaskScale.OFFICIAL) == shape.official
        assert named.source == task.source
    assert task.sizes_at(TaskScale.SMALL) == task.shapes[0].small
    with pytest.raises(TaskError, match=f"has no shape 'nowhere'; it has {task.shapes[0].name}"):
        load("rms_norm_bf16@nowhere")
    with pytest.raises(TaskError, match="has no shape 'wide'; it has one size only; write 'relu'"):
        load("relu@wide")


def test_single_id_gives_one_task() -> None:
    (task,) = load("softmax")
    assert task.id == "softmax"
    assert "class Model" in task.source


def test_mixed_sequence_keeps_order_and_drops_duplicates() -> None:
    mine = make_task()
    assert ids(["tanh", mine, "pilot/train", mine]) == ["tanh", "mine", "relu", "leaky_relu", "sigmoid"]


def test_own_task_is_taken_as_it_is() -> None:
    mine = make_task(sizes={TaskScale.SMALL: {"N": 4, "M": 2}})
    assert load(mine) == (mine,)


def test_same_id_for_two_tasks_is_refused() -> None:
    with pytest.raises(TaskError, match="another id"):
        load(["relu", make_task(id="relu")])


@pytest.mark.parametrize(
    ("name", "meant"), [("ReLU", "'relu'"), ("soft_max", "'softmax'"), ("pilot/trian", "'pilot/train'")]
)
def test_unknown_name_offers_close_matches(name: str, meant: str) -> None:
    with pytest.raises(TaskError) as caught:
        load(name)
    message = str(caught.value)
    assert f"Did you mean {meant}" in message
    assert "The suites are" not in message


def test_unknown_name_without_a_close_match_guesses_nothing() -> None:
    with pytest.raises(TaskError, match="no task or suite 'zzzz'") as caught:
        load("zzzz")
    assert "Did you mean" not in str(caught.value)
    assert all(suite in str(caught.value) for suite in suite_names())


def test_file_that_is_no_task_file_is_told_from_a_misspelling(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"'\*\.txt'\. .* a task file ends in \.py"):
        load("*.txt")
    (tmp_path / "notes").write_text("", encoding="utf-8")
    with pytest.raises(TaskError, match=r"a task file ends in \.py"):
        load(str(tmp_path / "notes"))
    with pytest.raises(
        TaskError, match=r"It is a folder: name the task files in it, such as '.*/my_task\.py'"
    ):
        load(str(tmp_path))


def test_kernelbench_must_be_a_path() -> None:
    with pytest.raises(ConfigurationError, match="kernelbench=5 must be the path of a KernelBench checkout"):
        load("relu", kernelbench=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [1, 4])
def test_kernelbench_suites_say_where_to_get_it(level: int, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"git clone https://github\.com/ScalingIntelligence/KernelBench"):
        load(f"kernelbench/level{level}", kernelbench=tmp_path)


@pytest.mark.parametrize("nothing", [[], (), "", "  ", [""]])
def test_empty_spec_is_refused(nothing: Any) -> None:
    with pytest.raises(TaskError, match="Pass a suite"):
        load(nothing)


@pytest.mark.parametrize("wrong", [3, None, ["relu", 1.5]])
def test_wrong_type_is_refused(wrong: Any) -> None:
    with pytest.raises(TaskError, match="a sequence of these"):
        load(wrong)


def test_unknown_suite_is_refused() -> None:
    with pytest.raises(TaskError, match="Use one of: pilot"):
        suite_task_ids("pilots")


# --- validation of a user's task -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": " "}, "needs an id"),
        ({"source": "class Model(:\n"}, r"not valid Python \(.*line 1\)"),
        ({"source": "x = '\0'"}, "not valid Python|cannot be parsed"),
        ({"source": ""}, "has no Model"),
        ({"source": SOURCE.replace("class Model", "class Net")}, "has no Model"),
        ({"source": SOURCE.replace("def get_inputs", "def inputs")}, "has no get_inputs"),
        ({"source": SOURCE.replace("def get_init_inputs", "def init")}, "has no get_init_inputs"),
        ({"sizes": {TaskScale.SMALL: {"K": 4}}}, "one of: M, N"),
        ({"sizes": {TaskScale.SMALL: {"ratio": 4}}}, "not a module-level integer"),
        ({"sizes": {TaskScale.SMALL: {"N": 0}}}, "integer of 1 or more"),
        ({"sizes": {TaskScale.SMALL: {"N": True}}}, "integer of 1 or more"),
        ({"sizes": {"tiny": {"N": 4}}}, "TaskScale.SMALL"),
        ({"domains": (Domain(2.0, 1.0),)}, "is empty"),
        ({"flops_per_element": float("nan")}, "finite number"),
        ({"tolerance": Tolerance(absolute=-1.0, reason="why not")}, "absolute tolerance"),
        ({"tolerance": Tolerance(reduction_length=0)}, "reduction_length"),
        ({"tolerance": Tolerance(reduction_length="a")}, "reduction_length='a'"),  # type: ignore[arg-type]
        ({"tolerance": Tolerance(reduction_length=float("inf"))}, "=inf"),  # type: ignore[arg-type]
        ({"tolerance": Tolerance(absolute="x", reason="why not")}, "of 'x'"),  # type: ignore[arg-type]
        ({"tolerance": Tolerance(reason=5)}, "give a text"),  # type: ignore[arg-type]
        ({"memory_gib": 10**400}, "memory_gib=1000.*finite number"),
        ({"memory_gib": 10**5000}, "too long to show"),
        ({"flops_per_element": -(10**5000)}, "too long to show"),
        ({"domains": (Domain(0, 10**5000),)}, "bounds that are no numbers"),
        ({"sizes": {TaskScale.SMALL: {"N": 10**5000}}}, "below 2"),
        ({"source": SOURCE + "N = " + "-" * 100_000 + "1"}, "not valid Python|cannot be parsed"),
        ({"source": SOURCE + "N = 1" + " + 1" * 3000}, "nested too deeply|cannot be parsed|not valid Python"),
        ({"id": 3}, "needs an id"),
        ({"id": "../../x"}, "letters, digits"),
        ({"id": ".."}, "letters, digits"),
        ({"id": "a\nb"}, "letters, digits"),
        ({"id": "mine\n"}, "letters, digits"),
        ({"id": " relu "}, "letters, digits"),
        ({"id": "r\ud800"}, "letters, digits"),
        ({"id": "@wide"}, "letters, digits"),
        ({"id": "mine@wide"}, "names a shape 'wide' that the task does not have; it has none"),
        ({"id": "mine@a@b", "shapes": (Shape("a"), Shape("b"))}, "it has a, b"),
    ],
)
def test_unusable_task_is_refused_with_a_reason(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        load(make_task(**changes))


def test_own_task_may_be_at_one_of_its_shapes() -> None:
    assert ids(make_task(shapes=(Shape("a"), Shape("b"))).at("b")) == ["mine@b"]


def test_task_that_went_through_json_is_refused_with_the_way_out() -> None:
    made = EnvSpec("KernelEnv-v0", entry_point="gym_kernel:KernelEnv", kwargs={"tasks": [make_task()]})
    spec = EnvSpec.from_json(made.to_json())
    with pytest.raises(TaskError, match=r"given as a dict with the id 'mine'.*JSON.*by its id or its file"):
        load(spec.kwargs["tasks"])


def test_own_tolerance_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="must say why"):
        Tolerance(absolute=1e-3)


# --- the references ------------------------------------------------------------------------------------

FORMULAS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": lambda x: x.clamp_min(0),
    "leaky_relu": lambda x: torch.maximum(x, 0.01 * x),
    "sigmoid": lambda x: 1 / (1 + torch.exp(-x)),
    "tanh": lambda x: 1 - 2 / (torch.exp(2 * x) + 1),
    "swish": lambda x: x / (1 + torch.exp(-x)),
    "hard_sigmoid": lambda x: ((x + 3) / 6).clamp(0, 1),
    "hard_tanh": lambda x: x.clamp(-1, 1),
    "softmax": lambda x: x.exp() / x.exp().sum(1, keepdim=True),
    "log_softmax": lambda x: x - x.exp().sum(1, keepdim=True).log(),
    "mingpt_gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}


@pytest.fixture(params=load("pilot"), ids=lambda task: task.id)
def task(request: pytest.FixtureRequest) -> Task:
    return cast(Task, request.param)


def reference_of(task: Task) -> Any:
    return importlib.import_module(f"gym_kernel.tasks.references.{task.id}")


def test_source_is_the_reference_module(task: Task) -> None:
    assert task.source == inspect.getsource(reference_of(task))


def test_reference_runs_at_small_scale(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    module = reference_of(task)
    sizes = task.sizes_at(TaskScale.SMALL)
    for name, value in sizes.items():
        monkeypatch.setattr(module, name, value)
    inputs = module.get_inputs()
    output = module.Model(*module.get_init_inputs())(*inputs)
    assert len(inputs) == len(task.domains)
    assert output.shape == inputs[0].shape == (sizes["batch_size"], sizes["dim"])
    assert output.dtype == torch.float32
    assert inputs[0].min() >= 0
    assert inputs[0].max() < 1


def test_reference_computes_its_function(task: Task) -> None:
    module = reference_of(task)
    model = module.Model(*module.get_init_inputs())
    x = 3 * torch.randn(7, 33, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model(x), FORMULAS[task.id](x), rtol=1e-12, atol=1e-14)


def test_official_sizes_are_those_of_the_module(task: Task) -> None:
    assert task.sizes_at(TaskScale.OFFICIAL) == {}


def test_sizes_of_a_task_cannot_be_changed_through_a_copy() -> None:
    (task,) = load("relu")
    task.sizes_at(TaskScale.SMALL)["dim"] = 1
    assert task.sizes_at(TaskScale.SMALL)["dim"] != 1


def test_erf_form_of_gelu_is_accepted_beside_the_tanh_form() -> None:
    (task,) = load("mingpt_gelu")
    (source,) = task.alternatives
    namespace: dict = {}
    exec(source, namespace)
    x = torch.linspace(-8, 8, 10_001, dtype=torch.float64)
    torch.testing.assert_close(namespace["Model"]()(x), torch.nn.functional.gelu(x), rtol=0, atol=0)


def test_importing_tasks_needs_neither_torch_nor_triton() -> None:
    code = (
        "import sys, gym_kernel.tasks as tasks; tasks.load('pilot'); "
        "print([name for name in ('torch', 'triton') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_sizes_may_be_assigned_together() -> None:
    source = make_task().source + "\ndepth, height = 16, 2 * N\n"
    mine = make_task(source=source, sizes={TaskScale.SMALL: {"depth": 2, "height": 4}})
    assert load(mine) == (mine,)
