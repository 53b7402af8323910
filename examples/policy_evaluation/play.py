"""Episodes of an evaluation, several at once, each through ``RepairBudget``."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from policy_evaluation.journal import Journal
from policy_evaluation.policy import Conversation, Policy
from policy_evaluation.protocol import Row, TaskKey

__all__ = ["MakeEnv", "play"]

MakeEnv = Callable[[], "gymnasium.Env[str, str]"]
"""Makes a ``KernelEnv`` under ``RepairBudget``; called once for each episode."""


def play(
    tasks: Sequence[TaskKey],
    policy: Policy,
    make_env: MakeEnv,
    journal: Journal,
    concurrency: int,
    on_end: Callable[[TaskKey], None] = lambda key: None,
) -> None:
    """Play one episode of each task and put its rows into the journal.

    Batches of episodes run at once on threads; the policy may make them wait for each other. When one fails, or at
    Ctrl-C, no other begins, and those that run are left after the submission that they are at.

    Args:
        tasks: The tasks.
        policy: Who answers.
        make_env: Makes an environment.
        journal: Takes the rows.
        concurrency: Batches that run at once.
        on_end: Called after each episode, on its thread.

    Raises:
        PolicyError: The policy cannot answer.
    """
    size = max(policy.batch, 1)
    batches = [tasks[start : start + size] for start in range(0, len(tasks), size)]
    stop = threading.Event()
    pool = ThreadPoolExecutor(max_workers=concurrency)
    futures = [pool.submit(_play_batch, batch, policy, make_env, journal, stop, on_end) for batch in batches]
    try:
        for future in wait(futures, return_when=FIRST_EXCEPTION).done:
            future.result()
    finally:
        stop.set()
        if not all(future.done() for future in futures):
            policy.cancel()
        pool.shutdown(wait=True, cancel_futures=True)


@dataclass
class _Episode:
    """One task on its way."""

    key: TaskKey
    env: gymnasium.Env[str, str]
    conversation: Conversation
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    over: bool = False


def _play_batch(
    keys: Sequence[TaskKey],
    policy: Policy,
    make_env: MakeEnv,
    journal: Journal,
    stop: threading.Event,
    on_end: Callable[[TaskKey], None],
) -> None:
    """Play the episodes of a batch in step: all their replies, then all their verdicts."""
    with ExitStack() as stack:
        episodes = []
        for key in keys:
            if stop.is_set():
                return
            env = make_env()
            stack.callback(env.close)
            prompt, _ = env.reset(options={"task": key.id})
            episodes.append(_Episode(key, env, Conversation(key.id, (prompt,))))
        judges = stack.enter_context(ThreadPoolExecutor(max_workers=len(keys)))
        while open_ones := [episode for episode in episodes if not episode.over]:
            if stop.is_set():
                return
            begun = time.monotonic()
            replies = policy.replies([episode.conversation for episode in open_ones])
            reply_s = time.monotonic() - begun
            turns = [
                judges.submit(_take_turn, episode, reply, reply_s, journal)
                for episode, reply in zip(open_ones, replies, strict=True)
            ]
            for turn in turns:
                turn.result()
            for episode in open_ones:
                if episode.over:
                    on_end(episode.key)


def _take_turn(episode: _Episode, reply: str | None, reply_s: float, journal: Journal) -> None:
    """Have one reply judged; no reply ends the episode."""
    if reply is None:
        episode.over = True
    else:
        observation, _, terminated, truncated, info = episode.env.step(reply)
        _keep(episode, reply, reply_s, journal, info)
        episode.conversation = episode.conversation.answered(reply, observation)
        episode.over = terminated or truncated
    if episode.over:
        journal.end(episode.key.id, episode.id)


def _keep(episode: _Episode, reply: str, reply_s: float, journal: Journal, info: dict[str, Any]) -> None:
    journal.add(Row.of(episode.key, episode.id, reply, reply_s, info), reply)
