"""Cheap checks that a task can be used: its source is parsed, never run, and torch is not needed."""

from __future__ import annotations

import ast
import math
import re

from gym_kernel.errors import TaskError
from gym_kernel.tasks.task import Task, TaskScale

__all__ = ["ID_RULE", "is_base_id", "is_finite_number", "shown", "validate_task"]

ID_RULE = "letters, digits, '_', '-' and '.', and not of dots alone"

_CONTRACT: tuple[tuple[str, type[ast.AST], str], ...] = (
    ("Model", ast.ClassDef, "class Model(torch.nn.Module)"),
    ("get_inputs", ast.FunctionDef, "def get_inputs()"),
    ("get_init_inputs", ast.FunctionDef, "def get_init_inputs()"),
)

_MOST_SHOWN_CHARS = 200
_INTEGER_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Pow)


def validate_task(task: Task) -> None:
    """Check a task against the contract of :class:`~gym_kernel.tasks.task.Task`.

    Args:
        task: Any task, built-in or the user's own.

    Raises:
        TaskError: Something is missing or does not fit; the message says what to change.
    """
    _check_id(task)
    module = _parse(task)
    _check_contract(task, module)
    try:
        names = _integer_names(module)
    except RecursionError as error:
        raise TaskError(
            f"The source of task {task.id!r} has an expression at module level that is nested too deeply. Make "
            "it simpler."
        ) from error
    _check_sizes(task, names)
    _check_numbers(task)


def is_base_id(text: str) -> bool:
    """Whether a text may be a task's id, without the name of a shape: it also names files and folders."""
    return re.fullmatch(r"[A-Za-z0-9_.-]+", text) is not None and text.strip(".") != ""


def shown(value: object) -> str:
    """A value as a message may show it: its ``repr``, cut short, or words where it has none."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        # Python writes no integers of more than 4300 digits.
        return f"a value of type {type(value).__name__} that is too long to show"
    return text if len(text) <= _MOST_SHOWN_CHARS else f"{text[:_MOST_SHOWN_CHARS]}..."


def _check_id(task: Task) -> None:
    if not isinstance(task.id, str) or not task.id.strip():
        raise TaskError("A task needs an id: pass Task(id='my_task', ...).")
    base, at_sign, shape = task.id.partition("@")
    if not is_base_id(base):
        raise TaskError(
            f"The task id {shown(task.id)} cannot be used. Make it of {ID_RULE}: Task(id='my_task', ...)."
        )
    if at_sign and all(each.name != shape for each in task.shapes):
        names = ", ".join(each.name for each in task.shapes) or "none"
        raise TaskError(
            f"The task id {shown(task.id)} names a shape {shown(shape)} that the task does not have; it has {names}. "
            "Leave '@' out of ids; Task.at(shape) adds it."
        )


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
        why = str(error) or "it is nested too deeply"
        raise TaskError(f"The source of task {task.id!r} cannot be parsed as Python: {why}.") from error


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
            if not _is_size(value):
                raise TaskError(
                    f"Task {task.id!r} sets {name} to {shown(value)}; a size is an integer of 1 or more, below 2**63."
                )


def _check_numbers(task: Task) -> None:
    for index, domain in enumerate(task.domains):
        if not (_is_edge(domain.low) and _is_edge(domain.high)):
            raise TaskError(
                f"Domain {index} of task {task.id!r} has bounds that are no numbers: low {shown(domain.low)}, high "
                f"{shown(domain.high)}. Give floating-point numbers, or leave them out."
            )
        if not domain.low < domain.high and not domain.fixed:
            raise TaskError(
                f"Domain {index} of task {task.id!r} is empty: low {domain.low} is not below high {domain.high}."
            )
    for name, value, what in (
        ("flops_per_element", task.flops_per_element, "flops_per_element="),
        ("memory_gib", task.memory_gib, "memory_gib="),
        ("absolute", task.tolerance.absolute, "an absolute tolerance of "),
    ):
        if not is_finite_number(value) or value < 0:
            raise TaskError(
                f"Task {task.id!r} has {what}{shown(value)}; give a finite number of 0 or more as {name}."
            )
    if not _is_size(task.tolerance.reduction_length):
        raise TaskError(
            f"Task {task.id!r} has reduction_length={shown(task.tolerance.reduction_length)}; it is 1 for elementwise "
            "tasks and the number of summed terms, an integer, otherwise."
        )
    if not isinstance(task.tolerance.reason, str):
        raise TaskError(
            f"Task {task.id!r} has {shown(task.tolerance.reason)} as the reason of its tolerance; give a text."
        )


def is_finite_number(value: object) -> bool:
    """Whether a value is an integer or a float that is finite as a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_edge(value: object) -> bool:
    return is_finite_number(value) or (isinstance(value, float) and math.isinf(value))


def _is_size(value: object) -> bool:
    # torch counts in 64 bits.
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 1 << 63


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
