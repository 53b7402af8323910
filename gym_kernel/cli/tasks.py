"""``gym-kernel tasks``: what there is to write kernels for."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from gym_kernel.cli.task_check import check_tasks
from gym_kernel.cli.task_table import task_json, task_table
from gym_kernel.errors import ConfigurationError
from gym_kernel.tasks import Task, load, suite_names
from gym_kernel.tasks.suites import builtin_tasks, suite_task_ids

__all__ = ["add_parser"]

_LIMIT_S = 300.0


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the program's parser."""
    parser = commands.add_parser(
        "tasks",
        help="list, show, check and export tasks",
        description="List tasks; or show a prompt, check that tasks are sound, or export their prompts.",
        epilog="Exit code: 0 done (with --check: every task is sound), 1 not, 2 cannot be met as asked for.",
    )
    parser.add_argument(
        "spec",
        nargs="*",
        metavar="SPEC",
        help="suites, task ids (with @shape), or task files (path/to/task.py); all built-in tasks if left out",
    )
    parser.add_argument(
        "--level", type=int, action="append", choices=(1, 2, 3), help="only this level; may be repeated"
    )
    parser.add_argument("--family", action="append", metavar="NAME", help="only this family; may be repeated")
    parser.add_argument("--suite", action="append", metavar="NAME", help="only this suite; may be repeated")
    parser.add_argument(
        "--kernelbench", metavar="PATH", help="a KernelBench checkout, for suites kernelbench/..."
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--prompt", metavar="ID", help="show the prompt of one task, as a policy gets it")
    action.add_argument(
        "--check",
        action="store_true",
        help="lint the tasks: small sizes on a CPU, official ones on a GPU",
    )
    action.add_argument(
        "--export", metavar="FILE.jsonl", help="write the prompts to a file, one JSON object a line"
    )
    parser.add_argument(
        "--device",
        default="auto",
        help="for --prompt, --check and --export: auto, cpu, cuda or cuda:N (default: auto)",
    )
    parser.add_argument(
        "--limit",
        type=_seconds,
        default=_LIMIT_S,
        metavar="SECONDS",
        help=f"for --check: longest that one task may take (default: {_LIMIT_S:g})",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a JSON list, with sizes and reference sources; with --check one of reports",
    )
    parser.set_defaults(run=_run)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def _run(options: argparse.Namespace) -> int:
    if options.prompt is not None:
        return _show_prompt(options)
    found = _selected(options)
    if options.check:
        return check_tasks(found, options.device, options.json, options.limit)
    if options.export is not None:
        return _export(found, options)
    print(json.dumps([task_json(task) for task in found], indent=2) if options.json else task_table(found))
    return 0


def _selected(options: argparse.Namespace) -> tuple[Task, ...]:
    loaded = load(options.spec or suite_names(), kernelbench=options.kernelbench)
    everything = (*loaded, *builtin_tasks().values())
    _check_known("family", options.family, {task.family for task in everything if task.family})
    _check_known("suite", options.suite, {*suite_names(), *(task.suite for task in everything)})
    found = tuple(task for task in loaded if _matches(task, options))
    if not found:
        raise ConfigurationError(
            "No task matches. Loosen --level, --family and --suite; `gym-kernel tasks` lists them all."
        )
    return found


def _check_known(what: str, names: list[str] | None, known: set[str]) -> None:
    for name in names or ():
        if name in known:
            continue
        close = difflib.get_close_matches(name.lower(), sorted(known), n=3, cutoff=0.6)
        said = (
            f"Did you mean {' or '.join(map(repr, close))}?"
            if close
            else f"Known are {', '.join(sorted(known))}."
        )
        raise ConfigurationError(f"There is no {what} {name!r}. {said}")


def _matches(task: Task, options: argparse.Namespace) -> bool:
    return (
        (not options.level or task.level in options.level)
        and (not options.family or task.family in options.family)
        and (not options.suite or any(_belongs(task, name) for name in options.suite))
    )


def _belongs(task: Task, suite: str) -> bool:
    if suite in suite_names():
        return task.base_id in suite_task_ids(suite)
    return task.suite == suite


def _show_prompt(options: argparse.Namespace) -> int:
    found = load(options.prompt, kernelbench=options.kernelbench)
    if len(found) > 1:
        ids = ", ".join(task.id for task in found)
        raise ConfigurationError(f"{options.prompt!r} is a suite. Name one of its tasks: {ids}.")
    # Here and not above: it starts an evaluator, which listing tasks can do without.
    from gym_kernel.tasks.export import prompt_rows

    (row,) = prompt_rows(found, device=options.device)
    print(json.dumps(dataclasses.asdict(row)) if options.json else row.prompt)
    return 0


def _export(tasks: tuple[Task, ...], options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from gym_kernel.tasks.export import prompt_rows

    path = Path(options.export)
    rows = prompt_rows(tasks, device=options.device)
    try:
        with _complete(path) as file:
            for row in tqdm(rows, total=len(tasks), desc="Exporting prompts", unit="task", disable=None):
                file.write(json.dumps(dataclasses.asdict(row)) + "\n")
    except OSError as error:
        raise ConfigurationError(
            f"Cannot write {path}: {error.strerror}. Pass a file in a folder that exists."
        ) from error
    print(f"Wrote {len(tasks)} prompts to {path}.")
    return 0


@contextmanager
def _complete(path: Path) -> Iterator[TextIO]:
    """Write a file that is there when all of it is, and else is as it was before."""
    if path.exists() and not path.is_file():
        # A device or a pipe, such as /dev/stdout, cannot be replaced.
        with path.open("w", encoding="utf-8") as file:
            yield file
        return
    # Through links, so that they stay links.
    path = path.resolve()
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("x", encoding="utf-8") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
