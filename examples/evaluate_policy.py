"""Evaluate a policy as it would be before and after training: greedy, on every task, two submissions each.

    python examples/evaluate_policy.py --model Qwen/Qwen2.5-Coder-7B-Instruct --out before.json
    python examples/evaluate_policy.py --model Qwen/Qwen2.5-Coder-7B-Instruct --adapter trained --out after.json
    python examples/evaluate_policy.py compare before.json after.json --out comparison

The policy is a Hugging Face model (``--model``), an OpenAI-compatible endpoint (``--endpoint URL --model NAME``) or a
folder of replies (``--replies DIR``: ``relu.turn1.txt``, ``relu.turn2.txt`` or ``relu.1.py`` and so on; a task without
a second file has one submission). Each task is one episode of ``RepairBudget``: prompt, reply, feedback, reply. Results
are counted for the training, reserved and held-out tasks, and for all.

A run can be interrupted: the same command goes on where it stopped. ``before.jsonl`` holds every row and
``before.replies/`` every reply as they come, ``before.json`` the result once all tasks are done. ``compare`` writes
``comparison.md``, ``comparison.json`` and, with matplotlib, ``comparison.png``. The folder of ``--out`` must exist.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium
from policy_evaluation.comparison import compare
from policy_evaluation.endpoint import Endpoint
from policy_evaluation.hugging_face import HuggingFaceModel
from policy_evaluation.journal import Journal, Run, load_run, save_run
from policy_evaluation.picture import draw
from policy_evaluation.play import play
from policy_evaluation.policy import Decoding, Policy, PolicyError
from policy_evaluation.protocol import Machine, Protocol, TaskKey
from policy_evaluation.reply_folder import ReplyFolder
from policy_evaluation.summary import summary, summary_table
from tqdm import tqdm

from gym_kernel import GymKernelError
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.tasks import Task, TaskScale, load
from gym_kernel.wrappers import RepairBudget


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the two commands.

    Args:
        arguments: Words of the command line; ``None`` for the process's own.

    Returns:
        The exit code: 0, 2 where the request cannot be met, 130 after Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] == ["compare"]:
            return _compare(_compare_options(words[1:]))
        return _evaluate(_run_options(words))
    except (PolicyError, GymKernelError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped. The same command goes on from here.", file=sys.stderr)
        return 130


def _evaluate(options: argparse.Namespace) -> int:
    tasks = load(options.tasks, kernelbench=options.kernelbench)
    # Starts nothing, and finds a mistaken option before a model is loaded.
    _make_env(options).close()
    policy = _policy(options, [task.id for task in tasks])
    evaluator = Evaluator(EvaluatorConfig(device=options.device, isolation=options.isolation))
    try:
        protocol, machine = _protocol(options, tasks, evaluator)
        journal = Journal(options.out, protocol, policy.facts)
        try:
            _play_rest(options, protocol, policy, journal)
            lost = len(protocol.tasks) - len(journal.finished())
            run = Run(protocol, policy.facts, machine, journal.rows(protocol))
        finally:
            journal.close()
    finally:
        evaluator.close()
    figures = {
        group: {view: asdict(one) for view, one in views.items()} for group, views in summary(run).items()
    }
    save_run(run, figures, options.out)
    print(summary_table(run))
    if lost:
        print(
            f"The evaluator failed in {lost} tasks, which are not counted. The same command tries them again."
        )
    print(options.out)
    return 0


def _play_rest(options: argparse.Namespace, protocol: Protocol, policy: Policy, journal: Journal) -> None:
    """Play what a former attempt has not finished."""
    finished = journal.finished()
    rest = [key for key in protocol.tasks if key.id not in finished]
    with tqdm(total=len(protocol.tasks), initial=len(finished), desc="tasks", unit="task") as bar:

        def on_end(key: TaskKey) -> None:
            solved = sum(any(row.correct for row in rows) for rows in journal.finished().values())
            bar.set_postfix_str(f"{solved} solved, last {key.id}", refresh=False)
            bar.update()

        try:
            play(rest, policy, lambda: _make_env(options), journal, options.concurrency, on_end)
        except PolicyError as error:
            raise PolicyError(
                f"{error} What was judged is kept: the same command goes on from here."
            ) from error


def _make_env(options: argparse.Namespace) -> gymnasium.Env[str, str]:
    env = gymnasium.make(
        "gym_kernel:KernelEnv-v0",
        tasks=options.tasks,
        device=options.device,
        kernelbench=options.kernelbench,
        isolation=options.isolation,
        timeout_s=options.timeout_s,
        record_dir=options.record_dir,
        evaluation_seed=options.evaluation_seed,
    )
    return RepairBudget(env, turns=options.turns, discount=options.discount)


def _protocol(
    options: argparse.Namespace, tasks: Sequence[Task], evaluator: Evaluator
) -> tuple[Protocol, Machine]:
    briefing = evaluator.brief(tasks[0])
    scale = TaskScale.OFFICIAL if briefing.device.is_cuda else TaskScale.SMALL
    protocol = Protocol(
        device=briefing.device.name,
        tasks=tuple(TaskKey.of(task, scale) for task in tasks),
        turns=options.turns,
        discount=options.discount,
        timeout_s=options.timeout_s,
        evaluation_seed=options.evaluation_seed,
    )
    return protocol, Machine.of(briefing)


def _policy(options: argparse.Namespace, task_ids: Sequence[str]) -> Policy:
    if options.replies is not None:
        return ReplyFolder(options.replies, task_ids)
    decoding = Decoding(options.max_new_tokens, options.template_options)
    if options.endpoint:
        key = os.environ.get(options.api_key_env, "")
        return Endpoint(options.endpoint, options.model, decoding, key, options.reply_timeout_s)
    return HuggingFaceModel(options.model, decoding, options.adapter, options.model_device, options.batch)


def _compare(options: argparse.Namespace) -> int:
    comparison = compare(load_run(options.before), load_run(options.after), options.tolerance)
    if not comparison.pairs:
        raise PolicyError("There is no task that both runs evaluated. Run them again.")
    text = comparison.to_markdown()
    Path(f"{options.out}.md").write_text(text, encoding="utf-8")
    figures = json.dumps(comparison.to_json(), indent=2) + "\n"
    Path(f"{options.out}.json").write_text(figures, encoding="utf-8")
    print(text)
    try:
        draw(comparison, Path(f"{options.out}.png"))
    except ImportError:
        print(f"{options.out}.md and .json are written; no picture: pip install matplotlib")
    return 0


def _run_options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    who = parser.add_argument_group("policy")
    who.add_argument("--model", help="name or path of a Hugging Face model, or its name at the endpoint")
    who.add_argument("--adapter", default="", help="PEFT adapter on top of --model")
    who.add_argument("--endpoint", default="", metavar="URL", help="such as http://localhost:8000/v1")
    who.add_argument("--replies", type=Path, metavar="DIR", help="folder of replies")
    who.add_argument("--max-new-tokens", type=_count, default=2_048, help="tokens of a reply (default 2048)")
    who.add_argument("--template-options", type=_template_options, default={}, metavar="JSON")
    who.add_argument("--model-device", default="auto", help="where --model runs, for instance cuda:1")
    who.add_argument("--batch", type=_count, default=1, help="replies that --model decodes together")
    who.add_argument("--api-key-env", default="OPENAI_API_KEY", help="environment variable of the API key")
    who.add_argument(
        "--reply-timeout-s", type=_seconds, default=900.0, help="for one reply, retries included"
    )
    how = parser.add_argument_group("protocol")
    how.add_argument("--tasks", nargs="+", default=["pilot"], help="suites or task ids (default: pilot)")
    how.add_argument("--kernelbench", type=Path, default=None, help="KernelBench checkout, for its suites")
    how.add_argument("--turns", type=_count, default=2, help="submissions for each task (default 2)")
    how.add_argument("--discount", type=float, default=0.4, help="weight of the second (default 0.4)")
    how.add_argument("--device", default="auto", help="device that judges: auto, cpu, cuda, cuda:1")
    how.add_argument("--isolation", default="auto")
    how.add_argument("--timeout-s", type=_seconds, default=300.0, help="for one submission (default 300)")
    how.add_argument("--evaluation-seed", type=int, default=None)
    parser.add_argument("--concurrency", type=_count, default=4, help="episodes, or batches, at once")
    parser.add_argument("--record-dir", type=Path, default=None, help="keep a record of every evaluation")
    parser.add_argument("--out", type=Path, required=True, help="result, for instance before.json")
    options = parser.parse_args(words)
    _check_policy(parser, options)
    options.out = Path(f"{str(options.out).removesuffix('.json')}.json")
    _check_folder(parser, options.out)
    return options


def _check_policy(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if (options.replies is None) == (options.model is None):
        parser.error("name one policy: --replies DIR, --model NAME, or --endpoint URL --model NAME")
    if options.endpoint and (options.adapter or options.model is None):
        parser.error("--endpoint goes with --model NAME and without --adapter")


def _compare_options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="evaluate_policy.py compare", description="Compare two results.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--out", type=Path, default=Path("comparison"))
    parser.add_argument(
        "--tolerance", type=float, default=0.05, help="difference of rewards that counts as none"
    )
    options = parser.parse_args(words)
    _check_folder(parser, options.out)
    return options


def _check_folder(parser: argparse.ArgumentParser, out: Path) -> None:
    """Refuse a mistyped folder now, and not when there are results to write."""
    if not out.parent.is_dir():
        parser.error(f"--out {out} is in a folder that does not exist; make {out.parent}, or name another")


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of seconds")
    return value


def _template_options(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object")
    return value


if __name__ == "__main__":
    sys.exit(main())
