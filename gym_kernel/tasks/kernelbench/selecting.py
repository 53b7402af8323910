"""What ``kernelbench/...`` names, and the tasks behind it."""

from __future__ import annotations

import difflib
import os
import re
import warnings
from collections.abc import Sequence

from gym_kernel.errors import TaskError
from gym_kernel.tasks.kernelbench.building import build_task
from gym_kernel.tasks.kernelbench.pinning import warn_of_differences
from gym_kernel.tasks.kernelbench.problem import Problem
from gym_kernel.tasks.kernelbench.reading import read_problems
from gym_kernel.tasks.kernelbench.unsound import flaw_of
from gym_kernel.tasks.task import Task

__all__ = ["UnsoundLeftOut", "is_kernelbench", "kernelbench_tasks"]

_SUFFIX = "+unsound"
_FORMS = (
    "'kernelbench/level1' to 'kernelbench/level4', 'kernelbench/level1/19', 'kernelbench/level1/19_ReLU' or "
    "'kernelbench/19_ReLU'; '+unsound' at the end lets problems in that are known to be unsound"
)


class UnsoundLeftOut(UserWarning):
    """A suite has problems that are known to be unsound; they were left out of it."""


def is_kernelbench(name: str) -> bool:
    """Whether a name is KernelBench's to understand."""
    return re.match(r"kernelbench(/|\+|$)|kb_level\d", name.strip(), re.IGNORECASE) is not None


def kernelbench_tasks(name: str, path: str | os.PathLike[str] | None) -> tuple[Task, ...]:
    """The tasks behind a name.

    Args:
        name: A level's suite (``"kernelbench/level1"``), all of them (``"kernelbench"``), one problem by number or
            name (``"kernelbench/level1/19"``, ``"kernelbench/19_ReLU"``) or by its task's id
            (``"kb_level1_19_relu"``). ``+unsound`` at the end lets unsound problems in.
        path: Where KernelBench is, see :func:`~gym_kernel.tasks.kernelbench.reading.read_problems`.

    Returns:
        The tasks by level and number.

    Raises:
        TaskError: ``path`` or ``name`` leads nowhere, or names a problem that is unsound.

    Warns:
        KernelBenchMismatch: Problems differ from those of the pinned revision.
        UnsoundLeftOut: A suite was cut down to its sound problems.
    """
    text = name.strip()
    allow_unsound = text.lower().endswith(_SUFFIX)
    bare = text[: -len(_SUFFIX)] if allow_unsound else text
    problems = read_problems(path)
    chosen, is_suite = _choose(bare, problems)
    warn_of_differences(chosen)
    if not allow_unsound:
        chosen = _without_unsound(chosen, bare, is_suite)
    return tuple(build_task(problem) for problem in chosen)


def _choose(name: str, problems: Sequence[Problem]) -> tuple[Sequence[Problem], bool]:
    """The problems of a name, and whether it names a suite."""
    parts = [part for part in name.lower().split("/") if part]
    if len(parts) == 1 and parts[0] == "kernelbench":
        return problems, True
    level = re.fullmatch(r"level(\d+)", parts[1]) if len(parts) > 1 else None
    if level is not None:
        of_level = [problem for problem in problems if problem.level == int(level.group(1))]
        if not of_level:
            present = ", ".join(f"kernelbench/level{n}" for n in sorted({p.level for p in problems}))
            raise TaskError(f"There is no suite {name!r}; in the KernelBench given are {present}.")
        if len(parts) == 2:
            return of_level, True
        problems = of_level
    elif len(parts) == 2 and parts[1].isdigit():
        raise TaskError(f"Say which level's problem {name!r} is meant to be: use {_FORMS}.")
    if len(parts) > (3 if level else 2):
        raise TaskError(f"{name!r} is not the name of a KernelBench suite or problem; use {_FORMS}.")
    wanted = parts[-1]
    found = [problem for problem in problems if wanted in _names_of(problem)]
    if len(found) != 1:
        raise TaskError(_not_found(name, wanted, problems))
    return found, False


def _names_of(problem: Problem) -> tuple[str, ...]:
    return (str(problem.number), problem.name.lower(), problem.task_id)


def _not_found(name: str, wanted: str, problems: Sequence[Problem]) -> str:
    known = {problem.name.lower(): problem.name for problem in problems}
    close = difflib.get_close_matches(wanted, known, n=3, cutoff=0.4)
    guess = f" Did you mean {' or '.join(repr(known[match]) for match in close)}?" if close else ""
    return f"There is no KernelBench problem {name!r}.{guess} Use {_FORMS}."


def _without_unsound(chosen: Sequence[Problem], name: str, is_suite: bool) -> list[Problem]:
    unsound = {problem: flaw for problem in chosen if (flaw := flaw_of(problem)) is not None}
    if not is_suite and unsound:
        ((problem, flaw),) = unsound.items()
        raise TaskError(
            f"KernelBench's {problem.place} ({problem.name}) is unsound: {flaw.reason}. No reward on it means "
            f"anything. Ask for '{problem.place}{_SUFFIX}' to use it all the same."
        )
    sound = [problem for problem in chosen if problem not in unsound]
    if unsound:
        numbers = ", ".join(f"level{p.level}/{p.number}" for p in unsound)
        warnings.warn(
            f"{len(unsound)} problems of {name} are known to be unsound and were left out, {len(sound)} remain: "
            f"{numbers}. Ask for '{name}{_SUFFIX}' to have them all.",
            UnsoundLeftOut,
            stacklevel=2,
        )
    if not sound:
        raise TaskError(
            f"Every problem of {name} is unsound. Ask for '{name}{_SUFFIX}' to use them all the same."
        )
    return sound
