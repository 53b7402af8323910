"""The revision of KernelBench that this version knows, by the hashes of its problems."""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from gym_kernel.tasks.kernelbench.known import LEVEL_HASHES, TABLE
from gym_kernel.tasks.kernelbench.problem import Problem

__all__ = [
    "REVISION",
    "KernelBenchMismatch",
    "content_hash",
    "is_pinned",
    "is_pinned_level",
    "level_hash",
    "pinned_plan",
    "warn_of_differences",
]

#: Commit of github.com/ScalingIntelligence/KernelBench whose problems were surveyed.
REVISION = "423217d9fda91e0c2d67e4a43bf62f96f6d104f1"

_HASH_CHARS = 16
_SHOWN = 8


class KernelBenchMismatch(UserWarning):
    """Problems differ from those of the pinned revision."""


@dataclass(frozen=True)
class _Pinned:
    content: str
    plan: int | None


def content_hash(source: str) -> str:
    """SHA-256 of a problem's text in UTF-8, in hex.

    Line ends and blanks at the end of the file do not count: a data file and a checkout differ in them.
    """
    text = source.replace("\r\n", "\n").rstrip() + "\n"
    return hashlib.sha256(text.encode()).hexdigest()


def level_hash(problems: Iterable[Problem]) -> str:
    """SHA-256 over names and contents of a level's problems, in the order of their numbers, in hex."""
    lines = [
        f"{problem.number} {problem.name} {content_hash(problem.source)}\n"
        for problem in sorted(problems, key=lambda problem: problem.number)
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def is_pinned_level(level: int, problems: Iterable[Problem]) -> bool:
    """Whether these are the problems of a level at :data:`REVISION`, all of them and unchanged."""
    return LEVEL_HASHES.get(level) == level_hash(problems)


def pinned_plan(problem: Problem) -> int | None:
    """The way to small sizes that was found to work on this very text.

    Returns:
        A way of :func:`~gym_kernel.tasks.kernelbench.shrinking.small_sizes`; ``None`` where none was tried out.
    """
    pinned = _pinned().get((problem.level, problem.number))
    return pinned.plan if pinned is not None and _agrees(pinned, problem) else None


def is_pinned(problem: Problem) -> bool:
    """Whether a problem's text is that of the pinned revision."""
    pinned = _pinned().get((problem.level, problem.number))
    return pinned is not None and _agrees(pinned, problem)


def warn_of_differences(problems: Iterable[Problem]) -> None:
    """Warn once, naming them, of problems whose text is not that of the pinned revision.

    Args:
        problems: Those that were asked for.
    """
    asked = list(problems)
    levels = {problem.level for problem in asked}
    if all(is_pinned_level(level, [p for p in asked if p.level == level]) for level in levels):
        return
    different = [f"level{p.level}/{p.name}" for p in asked if not is_pinned(p)]
    if not different:
        return
    rest = f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
    warnings.warn(
        f"{len(different)} of {len(asked)} KernelBench problems are not those of revision {REVISION[:12]}: "
        f"{', '.join(different[:_SHOWN])}{rest}. They are used as they are, but results do not compare with "
        "results at that revision; check it out to get rid of this warning.",
        KernelBenchMismatch,
        stacklevel=2,
    )


def _agrees(pinned: _Pinned, problem: Problem) -> bool:
    return content_hash(problem.source)[:_HASH_CHARS] == pinned.content


@functools.cache
def _pinned() -> dict[tuple[int, int], _Pinned]:
    known = {}
    for line in TABLE.split("\n"):
        if line:
            level, number, content, plan = line.split()
            known[int(level), int(number)] = _Pinned(content, None if plan == "?" else int(plan))
    return known
