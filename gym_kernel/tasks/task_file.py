"""One task in one file: a reference module, and what the judge must know of it as a literal ``TASK``.

    \"\"\"RMS norm over the last dimension.\"\"\"

    import torch
    from torch import nn

    TASK = {
        "family": "normalisation",
        "level": 2,
        "shapes": {
            "wide": {"official": {"rows": 8192, "dim": 4096}, "small": {"rows": 16, "dim": 384}},
        },
        "tolerance": {"reduction_length": 4096},
        "flops_per_element": 4,
    }


    class Model(nn.Module): ...

The file is parsed and not run. ``TASK`` may be left out, and so may each of its entries; a policy is shown the file
without it.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_kernel.errors import TaskError
from gym_kernel.tasks.task import Domain, Shape, Task, Tolerance, WorkPolicy
from gym_kernel.tasks.validation import ID_RULE, is_base_id, is_finite_number, shown

__all__ = ["parse_task", "read_task_file"]

_NAME = "TASK"
_KEYS = (
    "id", "suite", "title", "family", "level", "shapes", "domains", "tolerance", "work_policy", "flops_per_element",
    "rows_independent", "memory_gib", "alternatives", "template",
)  # fmt: skip
_EXAMPLE_SHAPES = '{"wide": {"official": {"rows": 8192}, "small": {"rows": 16}}}'


def read_task_file(path: str | Path, suite: str = "custom") -> Task:
    """Read a task from a file.

    Args:
        path: A ``.py`` file.
        suite: Suite of a task that names none.

    Raises:
        TaskError: The file cannot be read, or what it says is not in order; the message says what to change.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        # ValueError: the text is not UTF-8, or the path holds a null character.
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise TaskError(
            f"The task file {str(path)!r} cannot be read: {why}. Pass the path of a Python file in UTF-8; "
            "docs/tasks.md shows one, and `gym-kernel tasks` lists the tasks that need none."
        ) from error
    return parse_task(text, path.stem, suite, path)


def parse_task(text: str, name: str, suite: str = "custom", path: str | Path | None = None) -> Task:
    """Turn a task file's text into a task.

    Args:
        text: The file's text.
        name: Id of a task that names none.
        suite: Suite of a task that names none.
        path: What messages call the file; its task's id by default.

    Raises:
        TaskError: What it says is not in order.
    """
    where = name if path is None else str(path)
    # As Python reads source: lines end here and nowhere else.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        why = f"{getattr(error, 'msg', error)}{f', line {line}' if line else ''}"
        raise TaskError(f"The task file {where!r} is not valid Python: {why}. Mend it there.") from error
    except (RecursionError, MemoryError) as error:
        raise TaskError(
            f"The task file {where!r} is nested too deeply to be parsed. Make it simpler."
        ) from error
    declared = [node for node in module.body if _declares(node)]
    if len(declared) > 1:
        raise TaskError(f"The task file {where!r} assigns {_NAME} {len(declared)} times; once is enough.")
    _check_alone(module, declared, where)
    reader = _Reader(name, where, _literal(declared[0], where) if declared else {})
    source = _without(text, declared[0]) if declared else text
    docstring = (ast.get_docstring(module) or "").strip().partition("\n")[0].rstrip(".")
    return reader.task(source, suite, docstring)


@dataclass
class _Reader:
    """Reads the entries of one ``TASK``, each with its own complaint."""

    name: str
    where: str
    entries: dict[str, Any]

    def task(self, source: str, suite: str, title: str) -> Task:
        unknown = [key for key in self.entries if key not in _KEYS]
        if unknown:
            raise self._error(
                f"has {'an unknown entry' if len(unknown) == 1 else 'unknown entries'} "
                f"{', '.join(map(_unknown, unknown))}; known are {', '.join(_KEYS)}"
            )
        task_id = self._id()
        return Task(
            id=task_id,
            suite=self._text("suite", suite),
            title=self._text("title", title or task_id),
            source=source,
            shapes=self._shapes(),
            domains=self._domains(),
            tolerance=self._tolerance(),
            work_policy=self._policy(),
            flops_per_element=self._number("flops_per_element", 1.0),
            rows_independent=self._flag("rows_independent"),
            template=self._text("template", ""),
            alternatives=self._texts("alternatives"),
            family=self._text("family", ""),
            level=self._level(),
            memory_gib=self._number("memory_gib", 24.0),
        ).at_first_shape()

    def _error(self, what: str) -> TaskError:
        return TaskError(f"{_NAME} of task file {self.where!r} {what.rstrip('.')}.")

    def _id(self) -> str:
        task_id = self._text("id", self.name)
        if not is_base_id(task_id):
            raise TaskError(
                f"The task file {self.where!r} gives its task the id {shown(task_id)}, which cannot be used. Make it "
                f"of {ID_RULE}, in an entry 'id' of {_NAME} or in the file's name."
            )
        return task_id

    def _text(self, key: str, default: str) -> str:
        value = self.entries.get(key, default)
        if not isinstance(value, str):
            raise self._error(f"needs a text as {key!r}, not {shown(value)}")
        if any(0xD800 <= ord(character) <= 0xDFFF for character in value):
            raise self._error(
                f"has half of a surrogate pair in {key!r}, which cannot be printed: {shown(value)}"
            )
        return value

    def _texts(self, key: str) -> tuple[str, ...]:
        values = self.entries.get(key, ())
        if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
            raise self._error(f"needs a list of texts as {key!r}")
        return tuple(values)

    def _flag(self, key: str) -> bool:
        value = self.entries.get(key, False)
        if not isinstance(value, bool):
            raise self._error(f"needs True or False as {key!r}, not {shown(value)}")
        return value

    def _number(self, key: str, default: float) -> float:
        value = self.entries.get(key, default)
        if not is_finite_number(value) or value < 0:
            raise self._error(f"needs a finite number, 0 or more, as {key!r}, not {shown(value)}")
        return float(value)

    def _level(self) -> int:
        value = self.entries.get("level", 1)
        if value not in (1, 2, 3) or isinstance(value, bool):
            raise self._error(f"needs 1, 2 or 3 as 'level', not {shown(value)}")
        return int(value)

    def _policy(self) -> WorkPolicy:
        value = self.entries.get("work_policy", WorkPolicy.OWN_KERNELS_ONLY.value)
        try:
            return WorkPolicy(value)
        except ValueError:
            known = " or ".join(repr(policy.value) for policy in WorkPolicy)
            raise self._error(f"needs {known} as 'work_policy', not {shown(value)}") from None

    def _tolerance(self) -> Tolerance:
        value = self.entries.get("tolerance", {})
        known = {"absolute", "cap", "reduction_length", "reason"}
        if not isinstance(value, dict) or not set(value) <= known:
            raise self._error(
                f"needs a dict with {', '.join(sorted(known))} as 'tolerance', not {shown(value)}"
            )
        length, reason = value.get("reduction_length", 1), value.get("reason", "")
        if isinstance(length, bool) or not isinstance(length, int):
            raise self._error(
                f"needs a whole number as 'reduction_length' of its tolerance, not {shown(length)}"
            )
        for entry in ("absolute", "cap"):
            if not is_finite_number(value.get(entry, 0.0)):
                raise self._error(
                    f"needs a finite number as {entry!r} of its tolerance, not {shown(value[entry])}"
                )
        if not isinstance(reason, str):
            raise self._error(f"needs a text as 'reason' of its tolerance, not {shown(reason)}")
        if value.get("absolute") and not reason:
            raise self._error(
                'has an absolute tolerance of its own and must say why: add a "reason" to its tolerance, for instance '
                '{"absolute": 1e-6, "reason": "The usual form cancels near zero."}'
            )
        try:
            return Tolerance(**value)
        except (TypeError, ValueError) as error:
            raise self._error(f"has a tolerance that cannot be used: {error}") from error

    def _shapes(self) -> tuple[Shape, ...]:
        value = self.entries.get("shapes", {})
        if not isinstance(value, dict):
            raise self._error(f"needs a dict such as {_EXAMPLE_SHAPES} as 'shapes'")
        return tuple(self._shape(name, sizes) for name, sizes in value.items())

    def _shape(self, name: Any, sizes: Any) -> Shape:
        fits = isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_.-]+", name) and isinstance(sizes, dict)
        if not fits or not set(sizes) <= {"official", "small"}:
            raise self._error(f"has a shape {shown(name)} that is not of the form {_EXAMPLE_SHAPES}")
        for of_scale in sizes.values():
            if not isinstance(of_scale, dict) or not all(isinstance(key, str) for key in of_scale):
                raise self._error(f"gives shape {name!r} sizes that are no dict of names and whole numbers")
        return Shape(name, sizes.get("official", {}), sizes.get("small", {}))

    def _domains(self) -> tuple[Domain, ...]:
        values = self.entries.get("domains", ())
        if not isinstance(values, (list, tuple)):
            raise self._error("needs a list with one entry for each tensor of get_inputs as 'domains'")
        return tuple(self._domain(value) for value in values)

    def _domain(self, value: Any) -> Domain:
        if value == "any":
            return Domain()
        if value == "fixed":
            return Domain(fixed=True)
        if isinstance(value, (list, tuple)) and len(value) == 2:
            low, high = value
            low, high = -math.inf if low is None else low, math.inf if high is None else high
            if all(is_finite_number(edge) or edge in (-math.inf, math.inf) for edge in (low, high)):
                return Domain(low, high)
        raise self._error(
            f"has the domain {shown(value)}; use 'any', 'fixed' (left as get_inputs makes it) or [low, high], None for "
            "unbounded"
        )


def _declares(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    else:
        return False
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == _NAME


def _unknown(key: Any) -> str:
    """An unknown entry's name, and the known one that was meant."""
    if not isinstance(key, str):
        return shown(key)
    close = difflib.get_close_matches(key.lower(), _KEYS, n=1, cutoff=0.75)
    close = close or [known for known in _KEYS if len(key) > 2 and known.startswith(key.lower())]
    return f"{shown(key)} (did you mean {close[0]!r}?)" if close else shown(key)


def _check_alone(module: ast.Module, declared: list[ast.stmt], where: str) -> None:
    """Nothing else speaks of ``TASK``, and nothing else stands on its lines: it is taken out of the source."""
    others = [node for node in module.body if node not in declared]
    for node in others:
        if _names_it(node):
            raise TaskError(
                f"The task file {where!r} uses the name {_NAME} at line {node.lineno}. Assign {_NAME} once, as "
                f"`{_NAME} = {{...}}` at module level, and use another name elsewhere: policies are shown the file "
                "without it."
            )
        for it in declared:
            if node.lineno <= (it.end_lineno or it.lineno) and it.lineno <= (node.end_lineno or node.lineno):
                raise TaskError(
                    f"The task file {where!r} has another statement on a line of {_NAME} (line {it.lineno}). "
                    f"Let {_NAME} stand on lines of its own: they are taken out."
                )


def _names_it(node: ast.stmt) -> bool:
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id == _NAME:
            return True
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and each.name == _NAME:
            return True
        if isinstance(each, ast.alias) and (each.asname or each.name) == _NAME:
            return True
    return False


def _literal(node: ast.stmt, where: str) -> dict[str, Any]:
    assert isinstance(node, (ast.Assign, ast.AnnAssign))
    assert node.value is not None
    try:
        value = ast.literal_eval(node.value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        # Python shows the node as an object with an address.
        why = re.sub(r":? <ast\.[^>]*>", "", str(error)).replace("malformed node or string", "there is one")
        raise TaskError(
            f"{_NAME} of task file {where!r} must be a literal dict. Only literals are read: texts, numbers, True, "
            f"False, None, lists and dicts, no names, calls or other expressions ({why or 'it is nested too deeply'})."
        ) from error
    if not isinstance(value, dict):
        raise TaskError(f"{_NAME} of task file {where!r} must be a dict, not {type(value).__name__}.")
    return value


def _without(text: str, node: ast.stmt) -> str:
    # Not splitlines(), which also splits at form feeds and more, where Python's parser counts no line.
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    before, after = lines[: node.lineno - 1], lines[node.end_lineno :]
    while before and not before[-1].strip():
        before.pop()
    while after and not after[0].strip():
        after.pop(0)
    return "".join([*before, "\n\n", *after])
