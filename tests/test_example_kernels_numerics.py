"""The example kernels against float64, at several input scales.

Triton reads TRITON_INTERPRET when it is imported, so the kernels run in one child process for all tests:
this file, run as a script, prints what it measured as JSON.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from gym_kernel.tasks import Task, TaskScale, load

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "examples" / "kernels"

# Largest error relative to |expected| + RMS(expected); the strictest hidden test allows about 4e-6.
LIMIT = 2.5e-6


def measured_by_child(*names: str, **environment: str) -> dict[str, Any]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    # The ninja of a virtual environment is found even where that is not activated.
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        [sys.executable, __file__, *names],
        env={**os.environ, "PYTHONPATH": path, "PATH": programs, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.fixture(scope="module")
def triton_results() -> dict[str, Any]:
    return measured_by_child(*(task.id for task in load("pilot")), TRITON_INTERPRET="1")


@pytest.mark.parametrize("task_id", [task.id for task in load("pilot")])
def test_triton_kernel_is_accurate(task_id: str, triton_results: dict[str, Any]) -> None:
    too_large = {
        kind: error for kind, error in triton_results[task_id]["errors"].items() if not error < LIMIT
    }
    assert too_large == {}


@pytest.mark.parametrize("task_id", [task.id for task in load("pilot")])
def test_triton_kernel_leaves_its_input_alone(task_id: str, triton_results: dict[str, Any]) -> None:
    assert triton_results[task_id]["input_untouched"]
    assert triton_results[task_id]["own_storage"]


@pytest.mark.parametrize("task_id", [task.id for task in load("pilot")])
def test_triton_kernel_keeps_nan_where_it_was(task_id: str, triton_results: dict[str, Any]) -> None:
    assert triton_results[task_id]["nan_as_reference"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_cpp_kernel_is_accurate(tmp_path: Path) -> None:
    result = measured_by_child("cpp/mingpt_gelu", TORCH_EXTENSIONS_DIR=str(tmp_path))["cpp/mingpt_gelu"]
    assert {kind: error for kind, error in result["errors"].items() if not error < LIMIT} == {}
    assert result["input_untouched"]
    assert result["own_storage"]
    assert result["nan_as_reference"]


# --- the child -----------------------------------------------------------------------------------------


def inputs_of(shape: tuple[int, int]) -> Iterator[tuple[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(42)
    normal = torch.randn(shape, generator=generator)
    yield "uniform", torch.rand(shape, generator=generator)
    yield "tiny", normal * 1e-3
    yield "normal", normal
    yield "wide", normal * 10
    yield "huge", normal * 1e3
    yield "offset", normal + 100
    yield "negative offset", normal * 0.1 - 5
    yield "sparse", torch.where(torch.rand(shape, generator=generator) < 0.9, 0.0, normal)
    yield "ties", torch.full(shape, 1.5)
    outliers = normal * 1e-2
    outliers[:, -3:] = 50.0
    yield "outlier suffix", outliers
    yield "one row", normal[:1]
    yield "not contiguous", normal.repeat(1, 2)[:, ::2]


def relative_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    scale = expected.abs() + expected.square().mean().sqrt()
    return float(((actual.double() - expected).abs() / scale).nan_to_num(nan=0.0, posinf=float("inf")).max())


def measure(name: str) -> dict[str, Any]:
    (task,) = load(name.rsplit("/", 1)[-1])
    module = reference_of(task)
    arguments = module.get_init_inputs()
    reference = module.Model(*arguments)
    kernel = imported(KERNELS / f"{name}.py").ModelNew(*arguments)
    (official,) = module.get_inputs()
    errors = {
        kind: relative_error(kernel(x), reference(x.double())) for kind, x in inputs_of(tuple(official.shape))
    }
    before = official.clone()
    output = kernel(official)
    with_nan = official.clone()
    with_nan[1, 7] = float("nan")
    return {
        "errors": errors,
        "input_untouched": torch.equal(before, official),
        "own_storage": output.untyped_storage().data_ptr() != official.untyped_storage().data_ptr(),
        "nan_as_reference": torch.equal(kernel(with_nan).isnan(), reference(with_nan).isnan()),
    }


def reference_of(task: Task) -> Any:
    module = importlib.import_module(f"gym_kernel.tasks.references.{task.id}")
    for name, value in task.sizes_at(TaskScale.SMALL).items():
        setattr(module, name, value)
    return module


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    print(json.dumps({name: measure(name) for name in sys.argv[1:]}))
