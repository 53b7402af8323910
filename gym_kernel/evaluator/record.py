"""One line of JSON for every evaluation, enough to run it again."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gym_kernel.errors import ConfigurationError
from gym_kernel.evaluator.briefing import DeviceFacts
from gym_kernel.evaluator.evaluation_seed import SeedSequence
from gym_kernel.evaluator.messages import Evaluate
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.verdict import Verdict
from gym_kernel.tasks.task import Task

__all__ = ["RECORD_FILE", "RecordedEvaluation", "read_records", "write_record"]

RECORD_FILE = "evaluations.jsonl"


@dataclass(frozen=True)
class RecordedEvaluation:
    """What a line of a record says, as far as a replay needs it.

    Attributes:
        evaluation_id: Identifier of the evaluation.
        task: The whole task, reference source included.
        code: The submission's code.
        evaluation_seed: Root of the hidden seeds.
        device: Device id it ran on.
        isolation: Tier it ran under.
        timeout_s: Seconds it was allowed.
        status: What the verdict was.
    """

    evaluation_id: str
    task: Task
    code: str
    evaluation_seed: int
    device: str
    isolation: str
    timeout_s: float
    status: Status


def write_record(request: Evaluate, facts: DeviceFacts, seeds: SeedSequence, verdict: Verdict) -> None:
    """Append an evaluation to ``evaluations.jsonl`` in the request's record folder, if it names one.

    Args:
        request: What was submitted.
        facts: The device and the versions.
        seeds: Its root seed is recorded, which ``evaluation_seed=`` takes for a replay.
        verdict: The outcome.
    """
    if request.record_dir is None:
        return
    line = {
        "time_unix_s": time.time(),
        "evaluation_id": request.evaluation_id,
        "task": msgspec.to_builtins(request.task),
        "reference_sha256": _sha256(request.task.source),
        "code_sha256": _sha256(request.code),
        "code": request.code,
        "evaluation_seed": seeds.root,
        "timeout_s": request.timeout_s,
        "device": msgspec.to_builtins(facts),
        "verdict": msgspec.to_builtins(verdict),
    }
    folder = Path(request.record_dir)
    folder.mkdir(parents=True, exist_ok=True)
    # One write in append mode, so that judges of several devices can share a file.
    fd = os.open(folder / RECORD_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(fd, msgspec.json.encode(_writable(line)) + b"\n")
    finally:
        os.close(fd)


def read_records(path: str | os.PathLike[str]) -> Iterator[RecordedEvaluation]:
    """Read a record, oldest evaluation first.

    Args:
        path: The file, or the folder that holds it.

    Raises:
        ConfigurationError: There is no such file, or a line of it is not a record.
    """
    file = Path(path)
    if file.is_dir():
        file /= RECORD_FILE
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}. Name a record_dir.") from error
    for number, line in enumerate(lines, start=1):
        try:
            fields = msgspec.json.decode(line)
            verdict = fields["verdict"]
            yield RecordedEvaluation(
                evaluation_id=fields["evaluation_id"],
                # Not strict, because infinite bounds are written as text.
                task=msgspec.convert(fields["task"], Task, strict=False),
                code=fields["code"],
                evaluation_seed=fields["evaluation_seed"],
                device=verdict["device"],
                isolation=verdict["isolation"],
                timeout_s=fields["timeout_s"],
                status=Status(verdict["status"]),
            )
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"Line {number} of {file} is not a record: {error}.") from error


def _writable(value: Any) -> Any:
    """JSON has no infinities and no NaN; they are written as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _writable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_writable(item) for item in value]
    return value


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
