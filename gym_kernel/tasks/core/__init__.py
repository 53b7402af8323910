"""The project's own suite: one file a task, in a folder for each family.

Families are wholly in one split, so that what is learned on one of them can be measured on another.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files

from gym_kernel.tasks.task import Task
from gym_kernel.tasks.task_file import parse_task

__all__ = ["FAMILIES", "core_tasks"]

#: Families in order, and the split that each belongs to.
FAMILIES = {
    "elementwise": "train",
    "reductions": "train",
    "normalisation": "train",
    "matmul": "train",
    "losses": "train",
    "scans": "reserved",
    "convolution": "reserved",
    "attention": "heldout",
    "indexing": "heldout",
    "transformer": "heldout",
    "backward": "heldout",
}


@cache
def core_tasks() -> tuple[Task, ...]:
    """Every task of the suite, family by family, each at its first shape."""
    return tuple(task for family, split in FAMILIES.items() for task in _family(family, split))


def _family(family: str, split: str) -> list[Task]:
    folder = files("gym_kernel.tasks.core") / family
    if not folder.is_dir():
        return []
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".py"))
    suite = f"core/{split}/{family}"
    tasks = [
        parse_task((folder / n).read_text(encoding="utf-8"), n.removesuffix(".py"), suite) for n in names
    ]
    return [replace(task, family=family, suite=suite) for task in tasks]
