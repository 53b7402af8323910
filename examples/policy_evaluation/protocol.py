"""What must be equal for two runs to be comparable, and what one submission leaves behind."""

from __future__ import annotations

import hashlib
import math
import platform
from dataclasses import asdict, dataclass
from typing import Any

from gym_kernel import __version__
from gym_kernel.evaluator.briefing import Briefing
from gym_kernel.tasks import Task, TaskScale

__all__ = ["Machine", "Protocol", "Row", "TaskKey", "differences", "group_of"]

_GROUPS = {"pilot/train": "training", "pilot/reserved": "reserved", "pilot/heldout": "held-out"}


def group_of(task: Task) -> str:
    """The group that a task is counted in: the pilot's three by their usual names, else its suite."""
    return _GROUPS.get(task.suite, task.suite)


@dataclass(frozen=True)
class TaskKey:
    """A task as it was asked.

    Attributes:
        id: The task's id.
        group: See :func:`group_of`.
        sha256: Hash of its reference and of the sizes that were used.
    """

    id: str
    group: str
    sha256: str

    @classmethod
    def of(cls, task: Task, scale: TaskScale) -> TaskKey:
        """The key of ``task`` at ``scale``."""
        text = f"{task.source}\n{sorted(task.sizes_at(scale).items())}"
        return cls(task.id, group_of(task), hashlib.sha256(text.encode("utf-8")).hexdigest())


@dataclass(frozen=True)
class Protocol:
    """What is held equal in runs that are compared.

    Attributes:
        device: Marketing name of the device that judges.
        tasks: The tasks, in order.
        turns: Submissions for each task.
        discount: Weight of each submission's reward relative to the one before it.
        timeout_s: Seconds that one submission may spend on loading, compiling and running.
        evaluation_seed: Root of the judge's seeds, or ``None`` where they were drawn anew each time.
    """

    device: str
    tasks: tuple[TaskKey, ...]
    turns: int
    discount: float
    timeout_s: float
    evaluation_seed: int | None

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Protocol:
        """Read what ``dataclasses.asdict`` made."""
        return cls(**{**value, "tasks": tuple(TaskKey(**task) for task in value["tasks"])})


def differences(before: Protocol, after: Protocol) -> list[str]:
    """Say in words what differs between two protocols; nothing where they are equal.

    Example:
        >>> one = Protocol("NVIDIA H200", (TaskKey("relu", "training", "ab"),), 2, 0.4, 300.0, None)
        >>> differences(one, Protocol("AMD EPYC", one.tasks, 1, 0.4, 300.0, None))
        ["the device is 'NVIDIA H200' in one and 'AMD EPYC' in the other", 'turns is 2 in one and 1 in the other']
    """
    names = {"device": "the device"}
    found = [
        f"{names.get(key, key)} is {getattr(before, key)!r} in one and {getattr(after, key)!r} in the other"
        for key in ("device", "turns", "discount", "timeout_s", "evaluation_seed")
        if getattr(before, key) != getattr(after, key)
    ]
    return found + _task_differences(before, after)


def _task_differences(before: Protocol, after: Protocol) -> list[str]:
    ones = {task.id: task for task in before.tasks}
    others = {task.id: task for task in after.tasks}
    found = []
    for have, lack, where in ((ones, others, "first"), (others, ones, "second")):
        extra = [task_id for task_id in have if task_id not in lack]
        if extra:
            found.append(f"only the {where} has the tasks {', '.join(extra)}")
    changed = [task_id for task_id in ones if task_id in others and ones[task_id] != others[task_id]]
    if changed:
        found.append(f"the reference, sizes or group of {', '.join(changed)} changed")
    return found


@dataclass(frozen=True)
class Machine:
    """Where a run was judged: reported, and named where it differs, but no reason to refuse a comparison.

    Attributes:
        device: Facts of the device: id, name, memory, driver, versions of torch, triton and CUDA.
        isolation: Isolation tier of the workers.
        python: Version of Python.
        gym_kernel: Version of this package.
    """

    device: dict[str, Any]
    isolation: str
    python: str
    gym_kernel: str

    @classmethod
    def of(cls, briefing: Briefing) -> Machine:
        """This machine, as the evaluator knows it."""
        return cls(asdict(briefing.device), briefing.isolation, platform.python_version(), __version__)

    def versions(self) -> dict[str, str]:
        """What may move a time or a verdict a little, by name."""
        software = {name: str(self.device[name]) for name in ("driver", "torch", "triton", "cuda")}
        return {**software, "isolation": self.isolation, "gym-kernel": self.gym_kernel}


@dataclass(frozen=True)
class Row:
    """One submission and its verdict. A number that is not known is ``None``.

    Attributes:
        task: Id of the task.
        group: Its group.
        episode: Identifier of the episode.
        turn: Number of the submission in it, from 1.
        status: Name of the outcome.
        correct: Whether it earned a reward.
        cheat: Kind of cheat, or ``""``.
        reward: The submission's own reward, not discounted.
        runtime_us: Median verified time of the submission, in microseconds.
        runtime_ci_us: Half-width of its 95 % confidence interval.
        reference_us: Time of eager PyTorch.
        speedup: ``reference_us`` over ``runtime_us``.
        t_min_us: Roofline floor.
        roofline_fraction: ``min(t_min_us / runtime_us, 1)``.
        contended: Whether another process computed on the device.
        reply_sha256: Hash of the whole reply.
        reply_chars: Length of the reply, in characters.
        reply_s: Seconds until the policy had answered, or its batch had.
        evaluate_s: Seconds from request to verdict.
        evaluation_id: Identifier of the evaluation, as in a record.
    """

    task: str
    group: str
    episode: str
    turn: int
    status: str
    correct: bool
    cheat: str
    reward: float
    runtime_us: float | None
    runtime_ci_us: float | None
    reference_us: float | None
    speedup: float | None
    t_min_us: float | None
    roofline_fraction: float | None
    contended: bool
    reply_sha256: str
    reply_chars: int
    reply_s: float
    evaluate_s: float | None
    evaluation_id: str

    @classmethod
    def of(cls, key: TaskKey, episode: str, reply: str, reply_s: float, info: dict[str, Any]) -> Row:
        """The row of a step, from its info."""
        return cls(
            task=key.id,
            group=key.group,
            episode=episode,
            turn=int(info["turn"]),
            status=str(info["status"]),
            correct=bool(info["correct"]),
            cheat=str(info["cheat"]),
            reward=float(info["reward"]),
            contended=bool(info["contended"]),
            reply_sha256=hashlib.sha256(reply.encode("utf-8", "surrogatepass")).hexdigest(),
            reply_chars=len(reply),
            reply_s=reply_s,
            evaluation_id=str(info["evaluation_id"]),
            **{name: _known(info[name]) for name in _NUMBERS},
        )


_NUMBERS = (
    "runtime_us",
    "runtime_ci_us",
    "reference_us",
    "speedup",
    "t_min_us",
    "roofline_fraction",
    "evaluate_s",
)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
