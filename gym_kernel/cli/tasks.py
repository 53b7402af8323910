"""``gym-kernel tasks``: what there is to write kernels for."""

from __future__ import annotations

import argparse
import json

from gym_kernel.tasks import Task, load, suite_names

__all__ = ["add_parser"]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the program's parser."""
    parser = commands.add_parser("tasks", help="list tasks", description="List the tasks of a suite.")
    parser.add_argument(
        "spec", nargs="?", metavar="SPEC", help="a suite or a task id; all built-in suites if left out"
    )
    parser.add_argument(
        "--kernelbench", metavar="PATH", help="a KernelBench checkout, for suites kernelbench/..."
    )
    parser.add_argument(
        "--json", action="store_true", help="print a JSON list, with sizes and reference sources"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    spec = suite_names() if options.spec is None else options.spec
    found = load(spec, kernelbench=options.kernelbench)
    if options.json:
        print(json.dumps([_as_json(task) for task in found], indent=2))
    else:
        print(_table(found))
    return 0


def _as_json(task: Task) -> dict[str, object]:
    sizes = {scale.value: values for scale, values in task.sizes.items()}
    return {"id": task.id, "suite": task.suite, "title": task.title, "sizes": sizes, "source": task.source}


def _table(found: tuple[Task, ...]) -> str:
    rows = [("TASK", "SUITE", "TITLE"), *((task.id, task.suite, task.title) for task in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(f"{name:<{widths[0]}}  {suite:<{widths[1]}}  {title}" for name, suite, title in rows)
