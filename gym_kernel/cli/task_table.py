"""Tasks as lines for people and as JSON for programs."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from gym_kernel.tasks import Task

__all__ = ["aligned", "dtype_of", "task_json", "task_table"]

_DTYPES = ("bfloat16", "float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
_SUFFIXES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8": "float8_e4m3fn",
}


def task_table(tasks: Sequence[Task]) -> str:
    """One line for each task, under a headline."""
    rows = [
        (task.id, task.suite, str(task.level), dtype_of(task), _shapes(task), task.title) for task in tasks
    ]
    return aligned(("TASK", "SUITE", "LEVEL", "DTYPE", "SHAPES", "TITLE"), rows)


def task_json(task: Task) -> dict[str, Any]:
    """What there is to know of a task, for ``json.dumps``."""
    return {
        "id": task.id,
        "suite": task.suite,
        "title": task.title,
        "family": task.family,
        "level": task.level,
        "dtype": dtype_of(task),
        "shapes": {shape.name: {"official": shape.official, "small": shape.small} for shape in task.shapes},
        "sizes": {scale.value: values for scale, values in task.sizes.items()},
        "work_policy": task.work_policy.value,
        "memory_gib": task.memory_gib,
        "source": task.source,
    }


def dtype_of(task: Task) -> str:
    """The dtype that a task is about, by its id, its title or its ``get_inputs``; else ``"float32"``."""
    suffix = task.base_id.rpartition("_")[2]
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    in_title = [word for word in re.findall(r"\w+", task.title) if word in _DTYPES]
    if in_title:
        return in_title[0]
    return next(iter(_dtypes_in_get_inputs(task.source)), "float32")


def aligned(headline: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with columns of one width, the last one ragged."""
    table = [headline, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(headline) - 1)]
    lines = [
        "  ".join([*(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=False)), row[-1]]) for row in table
    ]
    return "\n".join(line.rstrip() for line in lines)


def _shapes(task: Task) -> str:
    return ",".join(shape.name for shape in task.shapes) or "-"


def _dtypes_in_get_inputs(source: str) -> list[str]:
    functions = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == "get_inputs"
    ]
    return [
        node.attr
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr in _DTYPES
    ]
