"""One line of JSON for every evaluation, enough to run it again."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import msgspec

from gym_kernel.evaluator.briefing import DeviceFacts
from gym_kernel.evaluator.evaluation_seed import SeedSequence
from gym_kernel.evaluator.messages import Evaluate
from gym_kernel.evaluator.verdict import Verdict

__all__ = ["RECORD_FILE", "write_record"]

RECORD_FILE = "evaluations.jsonl"


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
    line: dict[str, Any] = {
        "time_unix_s": time.time(),
        "evaluation_id": request.evaluation_id,
        "task": request.task.id,
        "reference_sha256": _sha256(request.task.source),
        "code_sha256": _sha256(request.code),
        "code": request.code,
        "evaluation_seed": seeds.root,
        "device": msgspec.to_builtins(facts),
        "verdict": msgspec.to_builtins(verdict),
    }
    folder = Path(request.record_dir)
    folder.mkdir(parents=True, exist_ok=True)
    # One write in append mode, so that judges of several devices can share a file.
    fd = os.open(folder / RECORD_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(fd, msgspec.json.encode(line) + b"\n")
    finally:
        os.close(fd)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
