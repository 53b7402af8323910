"""The text space of actions and observations, and the way text is made to fit it."""

from __future__ import annotations

import multiprocessing
import re
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Text
from gymnasium.vector.utils import create_shared_memory

__all__ = ["KernelText", "clean_text", "printable_text"]

_CHARSET = "".join(chr(code) for code in range(0x20, 0x7F)) + "\n\t"
_OUTSIDE = re.compile(r"[^\t\n\x20-\x7e]")
_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# Quotation marks, dashes, ellipsis: compilers print them, and escapes would make them hard to read.
_TYPOGRAPHY = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2013": "-",
        "\u2014": "-",
        "\u2026": "...",
    }
)


class KernelText(Text):
    r"""Text of printable ASCII, newline and tab, from empty up to ``max_length`` characters.

    Small to build, copy and pickle, unlike a full-Unicode :class:`gymnasium.spaces.Text`.

    Args:
        max_length: Longest text, in characters, inclusive.
        seed: Seed for sampling.

    Example:
        >>> space = KernelText(16)
        >>> "x = 1\n" in space, "" in space, "caf\u00e9" in space
        (True, True, False)
    """

    def __init__(self, max_length: int, *, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=_CHARSET, seed=seed)

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string of this space; 64k characters take well under a millisecond."""
        return isinstance(x, str) and len(x) <= self.max_length and not _OUTSIDE.search(x)

    def __repr__(self) -> str:
        return f"KernelText({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelText) and self.max_length == other.max_length


@create_shared_memory.register(KernelText)
def _refuse_shared_memory(space: KernelText, n: int = 1, ctx: ModuleType = multiprocessing) -> NoReturn:
    # Gymnasium's shared memory for Text returns filler characters in place of the observation, silently.
    raise CustomSpaceError(
        "Text observations are lost in AsyncVectorEnv's shared memory. Pass shared_memory=False, or use "
        'gymnasium.make_vec("gym_kernel:KernelEnv-v0", num_envs=...), which needs no shared memory.'
    )


def printable_text(text: str) -> str:
    r"""Rewrite text with the characters of :class:`KernelText` only, whatever its length.

    Terminal colour sequences vanish, line endings become newlines, typographic quotes become plain ones, and
    any other character outside the space becomes a backslash escape.

    Example:
        >>> printable_text("a\r\nb\x00\x1b[31mred\x1b[0m \u00e9")
        'a\nb\\x00red \\xe9'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _TERMINAL_SEQUENCE.sub("", text).translate(_TYPOGRAPHY)
    text = text.encode("ascii", "backslashreplace").decode("ascii")
    return _OUTSIDE.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def clean_text(text: str, max_chars: int) -> str:
    r"""Make text fit ``KernelText(max_chars)``: rewrite it, and cut its middle where it is too long.

    Args:
        text: Any text.
        max_chars: Longest result, in characters.

    Returns:
        The text, or its head and tail round a line that says how many characters were left out.

    Example:
        >>> clean_text("0123456789" * 8, 60)
        '0123456789012\n[... 54 characters left out ...]\n7890123456789'
    """
    text = printable_text(text)
    if len(text) <= max_chars:
        return text
    # The mark counts what is cut, and its own length depends on that count by a digit at most.
    room = max_chars - len(_cut_mark(len(text)))
    if room <= 0:
        return text[:max_chars]
    tail = room // 2
    return text[: room - tail] + _cut_mark(len(text) - room) + text[len(text) - tail :]


def _cut_mark(count: int) -> str:
    return f"\n[... {count} characters left out ...]\n"
