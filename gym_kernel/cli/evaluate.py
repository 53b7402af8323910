"""``gym-kernel evaluate``: judge one file as if a policy had written it."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from gym_kernel.errors import ConfigurationError
from gym_kernel.evaluator.status import Status
from gym_kernel.tasks import Task, load

__all__ = ["add_parser"]

_EXIT_CODES = {Status.CORRECT.value: 0, Status.INFRASTRUCTURE_ERROR.value: 3}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the program's parser."""
    parser = commands.add_parser(
        "evaluate",
        help="judge a kernel",
        description="Judge a kernel for a task and print the feedback that a policy would get.",
        epilog="Exit code: 0 correct, 1 not correct, 2 cannot be met as asked for, 3 the evaluator failed.",
    )
    parser.add_argument("task", metavar="TASK", help="a task id, for instance relu")
    parser.add_argument(
        "file", metavar="FILE", help="a module with class ModelNew, or a reply round it; - for stdin"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    parser.add_argument(
        "--isolation", default="auto", help="tier that the worker must run under (default: auto)"
    )
    parser.add_argument("--timeout-s", type=float, default=300.0, help="deadline in seconds (default: 300)")
    parser.add_argument(
        "--record-dir", metavar="DIR", help="append a record of the evaluation to a file in this folder"
    )
    parser.add_argument(
        "--kernelbench", metavar="PATH", help="a KernelBench checkout, for tasks kernelbench/..."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the feedback")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    task = _one_task(options)
    reply = _read(options.file)
    # Here and not above: the other commands have no use for an environment.
    from gym_kernel.envs.kernel_env import KernelEnv

    env = KernelEnv(
        tasks=task,
        device=options.device,
        isolation=options.isolation,
        timeout_s=options.timeout_s,
        record_dir=options.record_dir,
    )
    with env:
        _say(f"Starting the evaluator and measuring the reference of {task.id} ...")
        _, info = env.reset()
        _say(f"Judging {options.file} on {info['device']} ...")
        text, _, _, _, info = env.step(reply)
    print(_as_json(info, text) if options.json else text)
    return _EXIT_CODES.get(info["status"], 1)


def _one_task(options: argparse.Namespace) -> Task:
    found = load(options.task, kernelbench=options.kernelbench)
    if len(found) > 1:
        ids = ", ".join(task.id for task in found)
        raise ConfigurationError(f"{options.task!r} is a suite. Name one of its tasks: {ids}.")
    return found[0]


def _read(file: str) -> str:
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"Cannot read {file}: {error.strerror}. Pass the path of a Python file."
        ) from error
    return content.decode("utf-8-sig", "surrogateescape")


def _as_json(info: dict[str, Any], text: str) -> str:
    # JSON has no NaN: what is not known is null.
    known = {
        key: None if isinstance(value, float) and math.isnan(value) else value for key, value in info.items()
    }
    return json.dumps({**known, "feedback": text}, allow_nan=False)


def _say(message: str) -> None:
    if sys.stderr.isatty():
        print(message, file=sys.stderr)
