"""Replies that were written beforehand, from a folder of text files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from policy_evaluation.policy import Conversation, PolicyError, PolicyFacts

__all__ = ["ReplyFolder", "reply_file"]

_NAMES = ("{task}.turn{turn}.txt", "{task}.turn{turn}.md", "{task}.{turn}.txt", "{task}.{turn}.py")
_ONLY_FIRST = ("{task}.txt", "{task}.py")


def reply_file(task_id: str, turn: int) -> str:
    """Name under which a reply is kept; a task id may hold slashes, a file name may not."""
    return _NAMES[0].format(task=task_id.replace("/", "__"), turn=turn)


class ReplyFolder:
    """Answers with the files of a folder.

    For the first turn of task ``relu`` the first of these that exists: ``relu.turn1.txt``, ``relu.turn1.md``,
    ``relu.1.txt``, ``relu.1.py``, ``relu.txt``, ``relu.py``; for the second turn ``relu.turn2.txt`` and so on. A
    slash in a task id is written as two underscores. A task without a second reply has one turn. The replies
    that a run keeps have these names, so that a run can be judged again.

    Args:
        folder: The folder.
        task_ids: Tasks that will be asked for.

    Raises:
        PolicyError: There is no such folder, or a task has no first reply.
    """

    batch = 1

    def __init__(self, folder: Path, task_ids: Sequence[str]) -> None:
        self._folder = folder
        self.facts = PolicyFacts(kind="replies", name=str(folder))
        if not folder.is_dir():
            raise PolicyError(f"There is no folder {folder}. Pass one that holds a file for each task.")
        missing = [task_id for task_id in task_ids if self._path(task_id, 1) is None]
        if missing:
            raise PolicyError(
                f"{folder} has no reply for {', '.join(missing)}. Add {reply_file(missing[0], 1)} and the like, "
                "or name the tasks that have one with --tasks."
            )

    def replies(self, conversations: Sequence[Conversation]) -> list[str | None]:
        """The files' texts; ``None`` for a turn without a file."""
        return [self._reply(conversation) for conversation in conversations]

    def cancel(self) -> None:
        """Nothing waits here."""

    def _reply(self, conversation: Conversation) -> str | None:
        path = self._path(conversation.task_id, conversation.turn)
        return None if path is None else path.read_text(encoding="utf-8", errors="replace")

    def _path(self, task_id: str, turn: int) -> Path | None:
        patterns = _NAMES if turn > 1 else (*_NAMES, *_ONLY_FIRST)
        paths = [self._folder / name.format(task=task_id.replace("/", "__"), turn=turn) for name in patterns]
        return next((path for path in paths if path.is_file()), None)
