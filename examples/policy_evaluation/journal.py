"""A run on disk: rows as they are made, so that nothing is lost, and the finished result.

before.jsonl       a header, then a line for each submission and one for the end of each episode
before.replies/    every reply, under names that a folder of replies has
before.json        the result, once every task is done
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from gym_kernel.evaluator.status import Status
from policy_evaluation.policy import Decoding, PolicyError, PolicyFacts
from policy_evaluation.protocol import Machine, Protocol, Row, differences
from policy_evaluation.reply_folder import reply_file

__all__ = ["Journal", "Run", "load_run", "save_run"]

_FORMAT = "gym-kernel policy evaluation, version 1"


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        protocol: What must be equal for a comparison.
        policy: Who answered.
        machine: Where it was judged.
        rows: One for each submission, in the order of the tasks and turns.
    """

    protocol: Protocol
    policy: PolicyFacts
    machine: Machine
    rows: tuple[Row, ...]


class Journal:
    """Appends the rows of a run to a file, and knows which tasks a former attempt finished.

    Args:
        out: Path of the result; the journal stands beside it.
        protocol: The run's protocol.
        policy: Who answers.

    Raises:
        PolicyError: The file belongs to another run.
    """

    def __init__(self, out: Path, protocol: Protocol, policy: PolicyFacts) -> None:
        self._path = out.with_suffix(".jsonl")
        self._replies = out.with_suffix(".replies")
        self._mutex = threading.Lock()
        self._episodes: dict[str, list[Row]] = {}
        self._done: dict[str, list[Row]] = {}
        header = {"format": _FORMAT, "protocol": asdict(protocol), "policy": asdict(policy)}
        self._replies.mkdir(parents=True, exist_ok=True)
        lines = _whole_lines(self._path)
        if lines:
            _check_header(self._path, lines[0], header)
            for line in lines[1:]:
                self._take(line)
        self._file: IO[str] = open(self._path, "a", encoding="utf-8")  # noqa: SIM115
        if not lines:
            self._write(header)

    def add(self, row: Row, reply: str) -> None:
        """Keep a row and the reply that it is about."""
        (self._replies / reply_file(row.task, row.turn)).write_text(
            reply, encoding="utf-8", errors="surrogatepass"
        )
        self._append({"row": asdict(row)})

    def end(self, task_id: str, episode: str) -> None:
        """Keep that an episode is complete."""
        self._append({"end": {"task": task_id, "episode": episode}})

    def finished(self) -> dict[str, list[Row]]:
        """Rows of every task whose episode is complete and was not spoilt by the evaluator."""
        with self._mutex:
            return {
                task: rows
                for task, rows in self._done.items()
                if all(row.status != Status.INFRASTRUCTURE_ERROR.value for row in rows)
            }

    def rows(self, protocol: Protocol) -> tuple[Row, ...]:
        """Rows of every task whose episode is complete, in the protocol's order."""
        with self._mutex:
            return tuple(row for task in protocol.tasks for row in self._done.get(task.id, ()))

    def close(self) -> None:
        """Let go of the file."""
        with self._mutex:
            self._file.close()

    def _append(self, value: dict[str, Any]) -> None:
        with self._mutex:
            # After an interruption other threads may still have a verdict to tell.
            if not self._file.closed:
                self._write(value)
                self._take(value)

    def _write(self, value: dict[str, Any]) -> None:
        self._file.write(json.dumps(value) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _take(self, value: dict[str, Any]) -> None:
        if "row" in value:
            row = Row(**value["row"])
            self._episodes.setdefault(row.episode, []).append(row)
        else:
            end = value["end"]
            self._done[end["task"]] = self._episodes.pop(end["episode"], [])


def save_run(run: Run, summary: dict[str, Any], out: Path) -> None:
    """Write the result; a reader never sees half of it."""
    text = json.dumps({"format": _FORMAT, "summary": summary, **asdict(run)}, indent=2) + "\n"
    unfinished = out.with_suffix(".json.part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(out)


def load_run(path: Path) -> Run:
    """Read a result.

    Raises:
        PolicyError: There is no such file, or it is no result.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["format"] != _FORMAT:
            raise ValueError(f"its format is {value['format']!r}")
        return Run(
            protocol=Protocol.from_json(value["protocol"]),
            policy=_policy_facts(value["policy"]),
            machine=Machine(**value["machine"]),
            rows=tuple(Row(**row) for row in value["rows"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PolicyError(
            f"{path} cannot be read as a result of evaluate_policy.py ({error!r}). Pass the .json file that --out "
            "named; it is written once every task is done."
        ) from error


def _policy_facts(value: dict[str, Any]) -> PolicyFacts:
    decoding = value["decoding"]
    return PolicyFacts(**{**value, "decoding": None if decoding is None else Decoding(**decoding)})


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """Lines of a journal; one that was cut short by a crash is cut off the file too."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    try:
        return [json.loads(line) for line in whole.splitlines()]
    except ValueError as error:
        raise PolicyError(f"{path} is no journal of a run ({error}). Give --out another name.") from error


def _check_header(path: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    if found == json.loads(json.dumps(wanted)):
        return
    what = ["the file is of another kind"]
    if found.get("format") == _FORMAT:
        what = differences(Protocol.from_json(found["protocol"]), Protocol.from_json(wanted["protocol"]))
        old, new = found["policy"], json.loads(json.dumps(wanted["policy"]))
        what += [f"{key} is {old[key]!r} there and {new[key]!r} now" for key in new if old[key] != new[key]]
    raise PolicyError(
        f"{path} holds another run: {'; '.join(what)}. Give --out another name, or delete the file to begin anew."
    )
