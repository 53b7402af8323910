"""Markdown that survives whatever text is put into it."""

from __future__ import annotations

import re

__all__ = ["fenced"]

_BACKTICKS = re.compile(r"`{3,}")


def fenced(text: str, language: str = "") -> str:
    """Put text into a code fence that is longer than any run of backticks inside it.

    Args:
        text: Any text.
        language: Info string of the fence, for instance ``"python"``.

    Returns:
        The fenced block, without a newline at its end.

    Example:
        >>> print(fenced("x = 1", "python"))
        ```python
        x = 1
        ```
    """
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    body = text.removesuffix("\n")
    return f"{fence}{language}\n{body}\n{fence}"
