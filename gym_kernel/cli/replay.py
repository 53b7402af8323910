"""``gym-kernel replay``: run recorded evaluations again and compare the verdicts."""

from __future__ import annotations

import argparse
from pathlib import Path

from gym_kernel.errors import ConfigurationError

__all__ = ["add_parser"]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the program's parser."""
    parser = commands.add_parser(
        "replay",
        help="run recorded evaluations again",
        description="Run recorded evaluations again, with the same seeds, and compare the statuses.",
        epilog="Exit code: 0 every status is the same, 1 one differs.",
    )
    parser.add_argument("record", metavar="RECORD", type=Path, help="a record_dir, or its evaluations.jsonl")
    parser.add_argument("--id", metavar="ID", help="only the evaluation with this id")
    parser.add_argument("--device", help="another device than the recorded one")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    # Here and not above: the other commands have no use for the evaluator.
    from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
    from gym_kernel.evaluator.record import read_records
    from gym_kernel.evaluator.submission import Submission

    chosen = [r for r in read_records(options.record) if options.id in (None, r.evaluation_id)]
    if not chosen:
        raise ConfigurationError(f"{options.record} holds no evaluation {options.id or 'at all'}.")
    differing = 0
    evaluators: list[Evaluator] = []
    try:
        for record in chosen:
            config = EvaluatorConfig(
                device=options.device or record.device,
                timeout_s=record.timeout_s,
                evaluation_seed=record.evaluation_seed,
            )
            # Kept open, so that all of them share one host.
            evaluators.append(Evaluator(config))
            # Code that came out of a reply may hold fences of its own; a longer one keeps it whole.
            verdict = evaluators[-1].evaluate(Submission(record.task, _fenced(record.code)))
            same = verdict.status is record.status
            differing += not same
            mark = "same" if same else "DIFFERS"
            print(
                f"{record.evaluation_id} {record.task.id}: {record.status.value} -> {verdict.status.value} {mark}"
            )
    finally:
        for evaluator in evaluators:
            evaluator.close()
    return 1 if differing else 0


def _fenced(code: str) -> str:
    longest = max((len(line) - len(line.lstrip("`")) for line in code.split("\n")), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{code}\n{fence}"
