"""The command line: ``gym-kernel doctor | tasks | evaluate | replay | serve``.

Exit codes: 0 done (for ``evaluate``: correct; for ``doctor``: usable), 1 not, 2 what was asked for cannot
be met as written, 3 the evaluator failed, 130 interrupted, 141 nobody reads the output any more.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from gym_kernel import __version__
from gym_kernel.cli import doctor, evaluate, replay, serve, tasks
from gym_kernel.errors import EvaluatorError, GymKernelError

__all__ = ["main"]

_INTERRUPTED = 130
_READER_GONE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Words after the program's name; those of the process by default.

    Returns:
        The exit code.
    """
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        # Not parse_args, which would show the usage of the program and not that of the command.
        options.command.error(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except EvaluatorError as error:
        return _fail(error, 3)
    except GymKernelError as error:
        return _fail(error, 2)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        return _READER_GONE
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
    for its_parser in commands.choices.values():
        its_parser.set_defaults(command=its_parser)
    return parser


def _reader_is_gone() -> bool:
    """Whether nobody reads the standard output any more; if so, what is left to write goes nowhere."""
    try:
        print(flush=True)
    except BrokenPipeError:
        # The interpreter flushes once more at its end, and would complain there.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return True
    return False


def _fail(error: Exception, code: int) -> int:
    print(f"gym-kernel: {error}", file=sys.stderr)
    return code
