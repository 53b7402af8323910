"""What caller, host and judge say to each other."""

from __future__ import annotations

from enum import Enum
from typing import Union

import msgspec

from gym_kernel.evaluator.briefing import Briefing
from gym_kernel.evaluator.verdict import Verdict
from gym_kernel.tasks.task import Task

__all__ = [
    "JUDGE_SIGN_S",
    "Alive",
    "Brief",
    "BriefingReady",
    "Evaluate",
    "Failure",
    "FailureCause",
    "Greeting",
    "HostToCaller",
    "HostToJudge",
    "JudgeAlive",
    "JudgeToHost",
    "Progress",
    "Request",
    "Stage",
    "VerdictReady",
    "WorkerDone",
    "WorkerOffer",
    "WorkerTaken",
]


# How often a judge gives a sign of life, in seconds.
JUDGE_SIGN_S = 3.0


class Stage(str, Enum):
    """Where a request stands. Each stage but the queue has a limit of its own."""

    QUEUED = "queued"
    PREPARING = "preparing"
    LOADING = "loading"
    WAITING_FOR_DEVICE = "waiting_for_device"
    CHECKING = "checking"
    TIMING = "timing"


class FailureCause(str, Enum):
    """Why a request got no answer of its own kind."""

    TASK = "task"
    DEVICE = "device"
    INTERNAL = "internal"


class _Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every frame: immutable, no unknown fields."""


class Evaluate(_Frame, frozen=True, tag="evaluate"):
    """Caller -> host -> judge: judge this code."""

    id: int
    device: str
    task: Task
    code: str
    evaluation_id: str
    timeout_s: float
    seed: int | None = None
    record_dir: str | None = None


class Brief(_Frame, frozen=True, tag="brief"):
    """Caller -> host -> judge: what is known of this task on this device?"""

    id: int
    device: str
    task: Task


class Greeting(_Frame, frozen=True, tag="greeting"):
    """Host -> caller, once: imports are done, requests are welcome."""

    pid: int
    isolation: str


class Alive(_Frame, frozen=True, tag="alive"):
    """Host -> caller, every few seconds: the host still turns its loop."""


class VerdictReady(_Frame, frozen=True, tag="verdict_ready"):
    """Judge -> host -> caller: the outcome of an :class:`Evaluate`."""

    id: int
    verdict: Verdict


class BriefingReady(_Frame, frozen=True, tag="briefing_ready"):
    """Judge -> host -> caller: the answer to a :class:`Brief`."""

    id: int
    briefing: Briefing


class Failure(_Frame, frozen=True, tag="failure"):
    """Judge or host -> caller: a request that could not be served."""

    id: int
    cause: FailureCause
    message: str


class Progress(_Frame, frozen=True, tag="progress"):
    """Judge -> host: a request entered a stage that may take ``limit_s`` seconds at most."""

    id: int
    stage: Stage
    limit_s: float


class JudgeAlive(_Frame, frozen=True, tag="judge_alive"):
    """Judge -> host, every :data:`JUDGE_SIGN_S` seconds: the judge still reads."""


class WorkerOffer(_Frame, frozen=True, tag="worker_offer"):
    """Host -> judge: a fresh worker. Beside it: socket, exit pipe and output pipe."""

    worker_id: int
    pid: int


class WorkerTaken(_Frame, frozen=True, tag="worker_taken"):
    """Judge -> host: this worker is in use now, warm another one."""

    worker_id: int


class WorkerDone(_Frame, frozen=True, tag="worker_done"):
    """Judge -> host: this worker has served; kill it and everything it started."""

    worker_id: int


Request = Union[Evaluate, Brief]
HostToCaller = Union[Greeting, Alive, VerdictReady, BriefingReady, Failure]
HostToJudge = Union[Evaluate, Brief, WorkerOffer]
JudgeToHost = Union[JudgeAlive, VerdictReady, BriefingReady, Failure, Progress, WorkerTaken, WorkerDone]
