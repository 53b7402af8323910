"""Read KernelBench's problems from where the user keeps them: a checkout, a Parquet file or a JSONL file."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gym_kernel.errors import TaskError
from gym_kernel.tasks.kernelbench.pinning import REVISION
from gym_kernel.tasks.kernelbench.problem import Problem

__all__ = ["read_problems"]

_COLUMNS = ("code", "level", "name", "problem_id")
_HOW_TO_GET = (
    "Get KernelBench at the revision that this version knows:\n"
    "    git clone https://github.com/ScalingIntelligence/KernelBench\n"
    f"    git -C KernelBench checkout {REVISION}\n"
    "and pass kernelbench='KernelBench' (a Parquet or JSONL file of its data set will do as well)."
)


def read_problems(path: str | os.PathLike[str] | None) -> tuple[Problem, ...]:
    """Read every problem that ``path`` holds.

    Args:
        path: A checkout of KernelBench (its root, or the ``KernelBench`` folder in it), or a ``.parquet``,
            ``.jsonl`` or ``.json`` file with the columns ``code``, ``level``, ``name`` and ``problem_id``.

    Returns:
        The problems by level and number. A path that has not changed is read once.

    Raises:
        TaskError: There is no path or nothing of KernelBench is there; the message says what to do.
    """
    if path is None:
        raise TaskError(f"The problems of KernelBench do not come with this package. {_HOW_TO_GET}")
    where = Path(path).expanduser()
    if not where.exists():
        raise TaskError(f"There is nothing at kernelbench={os.fspath(path)!r}. {_HOW_TO_GET}")
    if where.is_dir():
        folder = _problems_folder(where)
        files = sorted(f for f in folder.glob("level*/*.py") if re.fullmatch(r"level[1-4]", f.parent.name))
        problems = _read_files(tuple((file, _stamp(file)) for file in files))
    else:
        problems = _read_table(where, _stamp(where))
    if not problems:
        raise TaskError(f"No problem of KernelBench is in {os.fspath(path)!r}. {_HOW_TO_GET}")
    return problems


def _problems_folder(where: Path) -> Path:
    inside = where / "KernelBench"
    return inside if inside.is_dir() and any(inside.glob("level[1-4]")) else where


def _stamp(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


@functools.lru_cache(maxsize=4)
def _read_files(files: tuple[tuple[Path, tuple[int, int]], ...]) -> tuple[Problem, ...]:
    found = []
    for file, _ in files:
        number = _number_of(file.stem)
        if number is None:
            continue
        try:
            source = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(f"The KernelBench problem {str(file)!r} cannot be read: {error}.") from error
        found.append(Problem(int(file.parent.name.removeprefix("level")), number, file.stem, source))
    return _in_order(found)


@functools.lru_cache(maxsize=4)
def _read_table(file: Path, stamp: tuple[int, int]) -> tuple[Problem, ...]:
    del stamp  # part of the cache's key: a file that was written anew is read anew
    if file.suffix == ".parquet":
        rows: Iterable[Mapping[str, Any]] = _parquet_rows(file)
    elif file.suffix in (".jsonl", ".json"):
        rows = _json_rows(file)
    else:
        raise TaskError(
            f"kernelbench={str(file)!r} is neither a folder nor a .parquet, .jsonl or .json file. {_HOW_TO_GET}"
        )
    return _in_order([_problem_of(row, file) for row in rows])


def _json_rows(file: Path) -> list[Mapping[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8")
        rows = (
            json.loads(text)
            if file.suffix == ".json"
            else [json.loads(x) for x in text.split("\n") if x.strip()]
        )
    except (OSError, ValueError) as error:
        raise TaskError(f"The KernelBench file {str(file)!r} cannot be read as JSON: {error}.") from error
    if not isinstance(rows, list):
        raise TaskError(f"The KernelBench file {str(file)!r} must hold a list of problems, one object each.")
    return rows


def _parquet_rows(file: Path) -> list[Mapping[str, Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise TaskError(
            f"Reading {str(file)!r} needs pyarrow: pip install pyarrow, or pass a checkout or a JSONL file."
        ) from error
    try:
        rows: list[Mapping[str, Any]] = parquet.read_table(file).to_pylist()
    except (ArrowException, OSError) as error:
        raise TaskError(f"The KernelBench file {str(file)!r} cannot be read as Parquet: {error}.") from error
    return rows


def _problem_of(row: object, file: Path) -> Problem:
    if not isinstance(row, Mapping) or not all(column in row for column in _COLUMNS):
        raise TaskError(
            f"A row of the KernelBench file {str(file)!r} lacks one of the columns {', '.join(_COLUMNS)}."
        )
    code, level, name, number = (row[column] for column in _COLUMNS)
    fits = (
        isinstance(code, str) and isinstance(name, str) and isinstance(number, int) and level in (1, 2, 3, 4)
    )
    if not fits:
        raise TaskError(
            f"A row of the KernelBench file {str(file)!r} has level {level!r}, name {name!r} and problem_id "
            f"{number!r}; needed are a level of 1 to 4, two texts (name, code) and a whole number."
        )
    stem = name.removesuffix(".py")
    return Problem(int(level), number, stem if _number_of(stem) == number else f"{number}_{stem}", code)


def _number_of(stem: str) -> int | None:
    found = re.match(r"(\d+)_", stem)
    return int(found.group(1)) if found else None


def _in_order(problems: list[Problem]) -> tuple[Problem, ...]:
    ordered = sorted(problems, key=lambda problem: (problem.level, problem.number))
    for one, other in itertools.pairwise(ordered):
        if (one.level, one.number) == (other.level, other.number):
            raise TaskError(
                f"KernelBench's level {one.level} has two problems {one.number}: {one.name!r} and {other.name!r}."
            )
    return tuple(ordered)
