"""What a policy hands in, and the code found inside it."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field

from gym_kernel.tasks.task import Task

__all__ = ["Submission", "extract_code"]

_FENCE_OPEN = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})\s*(?P<language>[^\s`]*)[^`]*$")
_NO_MODULE = frozenset(
    (
        "bash console csv diff html ini json log markdown md output plaintext powershell sh shell text toml txt yaml "
        "yml zsh"
    ).split()
)


@dataclass(frozen=True)
class Submission:
    """One attempt at one task.

    Attributes:
        task: The task that is attempted.
        text: The policy's reply as it stands; code is taken out of it by :func:`extract_code`.
        evaluation_id: Identifier of the evaluation, unique unless given.
    """

    task: Task
    text: str
    evaluation_id: str = field(default_factory=lambda: uuid.uuid4().hex)


def extract_code(reply: str) -> str:
    """Take the code out of a reply: its last fenced block, else the whole text.

    Blocks that say that they hold something else (``bash``, ``text``, ``json`` and the like) are passed over where
    there is another: chat models like to end with a command to install or run something.
    A last fence that is never closed runs to the end of the text, as a reply that was cut short
    leaves it. Fences follow CommonMark: three or more backticks or tildes, closed by at least as
    many of the same kind.

    Args:
        reply: Text of any length, with or without Markdown.

    Returns:
        The code without its fences.
    """
    reply = reply.removeprefix("\ufeff")
    blocks: list[str] = []
    others: list[str] = []
    found = blocks
    fence = ""
    body: list[str] = []
    # Not splitlines(): a form feed or a line separator inside a string literal is no end of line.
    for line in reply.replace("\r\n", "\n").split("\n"):
        if not fence:
            opened = _FENCE_OPEN.match(line)
            if opened:
                fence, body = opened["fence"], []
                found = others if opened["language"].lower() in _NO_MODULE else blocks
            continue
        stripped = line.strip()
        if stripped and set(stripped) == {fence[0]} and len(stripped) >= len(fence):
            found.append("\n".join(body))
            fence = ""
        else:
            body.append(line)
    if fence and any(line.strip() for line in body):
        found.append("\n".join(body))
    return (blocks or others or [reply])[-1]
