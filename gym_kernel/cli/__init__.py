"""The command line: ``gym-kernel doctor | tasks | evaluate | replay | serve``.

Exit codes: 0 done (for ``evaluate``: correct; for ``doctor``: usable), 1 not, 2 what was asked for cannot
be met as written, 3 the evaluator failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gym_kernel import __version__
from gym_kernel.cli import doctor, evaluate, replay, serve, tasks
from gym_kernel.errors import EvaluatorError, GymKernelError

__all__ = ["main"]

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Words after the program's name; those of the process by default.

    Returns:
        The exit code.
    """
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except EvaluatorError as error:
        return _fail(error, 3)
    except GymKernelError as error:
        return _fail(error, 2)
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gym-kernel",
        description="Write GPU kernels, have them judged and timed, train models to write them.",
    )
    parser.add_argument("--version", action="version", version=f"gym-kernel {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (doctor, tasks, evaluate, replay, serve):
        command.add_parser(commands)
    return parser


def _fail(error: Exception, code: int) -> int:
    print(f"gym-kernel: {error}", file=sys.stderr)
    return code
