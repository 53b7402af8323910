"""Cheap checks that a task can be used: its source is parsed, never run, and torch is not needed."""

from __future__ import annotations

import ast
import math

from gym_kernel.errors import TaskError
from gym_kernel.tasks.task import Task, TaskScale

__all__ = ["validate_task"]

_CONTRACT: tuple[tuple[str, type[ast.AST], str], ...] = (
    ("Model", ast.ClassDef, "class Model(torch.nn.Module)"),
    ("get_inputs", ast.FunctionDef, "def get_inputs()"),
    ("get_init_inputs", ast.FunctionDef, "def get_init_inputs()"),
)

_INTEGER_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Pow)


def validate_task(task: Task) -> None:
    """Check a task against the contract of :class:`~gym_kernel.tasks.task.Task`.

    Args:
        task: Any task, built-in or the user's own.

    Raises:
        TaskError: Something is missing or does not fit; the message says what to change.
    """
    if not task.id.strip():
        raise TaskError("A task needs an id: pass Task(id='my_task', ...).")
    module = _parse(task)
    _check_contract(task, module)
    _check_sizes(task, _integer_names(module))
    _check_numbers(task)


def _parse(task: Task) -> ast.Module:
    try:
        return ast.parse(task.source)
    except SyntaxError as error:
        where = f"line {error.lineno}" if error.lineno else "an unknown line"
        raise TaskError(
            f"The source of task {task.id!r} is not valid Python ({error.msg}, {where}). Pass the text of the "
            "reference module, for instance pathlib.Path('my_task.py').read_text()."
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise TaskError(f"The source of task {task.id!r} cannot be parsed as Python: {error}.") from error


def _check_contract(task: Task, module: ast.Module) -> None:
    for name, kind, declaration in _CONTRACT:
        if not any(isinstance(node, kind) and getattr(node, "name", "") == name for node in module.body):
            raise TaskError(
                f"The source of task {task.id!r} has no {name}. Add `{declaration}` at module level; a "
                "reference follows KernelBench's contract of Model, get_inputs and get_init_inputs."
            )


def _check_sizes(task: Task, known: frozenset[str]) -> None:
    of_shapes = [
        (scale, sizes) for shape in task.shapes for scale, sizes in task.at(shape.name).sizes.items()
    ]
    for scale, sizes in [*task.sizes.items(), *of_shapes]:
        if not isinstance(scale, TaskScale):
            raise TaskError(
                f"Task {task.id!r} gives sizes for {scale!r}. Use TaskScale.OFFICIAL or TaskScale.SMALL as keys."
            )
        for name, value in sizes.items():
            if name not in known:
                choices = ", ".join(sorted(known)) or "none"
                raise TaskError(
                    f"Task {task.id!r} sets the size {name!r} at scale {scale.value!r}, which is not a module-level "
                    f"integer of its source. Define `{name} = ...` there or use one of: {choices}."
                )
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise TaskError(
                    f"Task {task.id!r} sets {name} to {value!r}; a size is an integer of 1 or more."
                )


def _check_numbers(task: Task) -> None:
    for index, domain in enumerate(task.domains):
        if not domain.low < domain.high and not domain.fixed:
            raise TaskError(
                f"Domain {index} of task {task.id!r} is empty: low {domain.low} is not below high {domain.high}."
            )
    if not (math.isfinite(task.flops_per_element) and task.flops_per_element >= 0):
        raise TaskError(
            f"Task {task.id!r} has flops_per_element={task.flops_per_element}; give a finite number of 0 or more."
        )
    if not (math.isfinite(task.tolerance.absolute) and task.tolerance.absolute >= 0):
        raise TaskError(
            f"Task {task.id!r} has an absolute tolerance of {task.tolerance.absolute}; "
            "give a finite number of 0 or more."
        )
    if task.tolerance.reduction_length < 1:
        raise TaskError(
            f"Task {task.id!r} has reduction_length={task.tolerance.reduction_length}; it is 1 for elementwise tasks "
            "and the number of summed terms otherwise."
        )


def _integer_names(module: ast.Module) -> frozenset[str]:
    """Names that the module binds at its top level to an integer expression."""
    names: set[str] = set()
    for node in module.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            for one, its_value in _pairs(target, value):
                if isinstance(one, ast.Name) and _is_integer(its_value, names):
                    names.add(one.id)
    return frozenset(names)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Targets with their values; those of `depth, height = 16, 32` one by one."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _is_integer(node: ast.expr, names: set[str]) -> bool:
    # KernelBench also writes sizes as products, `M = 1024 * 2`, and in terms of each other.
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool)
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.BinOp) and isinstance(node.op, _INTEGER_OPERATORS):
        return _is_integer(node.left, names) and _is_integer(node.right, names)
    return False
