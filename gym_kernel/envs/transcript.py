"""The conversation of an episode, kept for rendering."""

from __future__ import annotations

from dataclasses import dataclass, field

from gym_kernel.envs.markdown import fenced
from gym_kernel.envs.text_space import printable_text

__all__ = ["Transcript"]


@dataclass
class Transcript:
    """A prompt, and each submission with its feedback.

    Attributes:
        prompt: The observation after ``reset``.
        turns: Pairs of submitted code and the observation it got.
    """

    prompt: str
    turns: list[tuple[str, str]] = field(default_factory=list)

    def text(self) -> str:
        """The conversation so far, safe to print: a policy's control characters are escaped.

        Example:
            >>> print(Transcript("Write x.", [("x = 1", "Verdict: correct.")]).text())
            === prompt ===
            Write x.
            <BLANKLINE>
            === submission 1 ===
            ```python
            x = 1
            ```
            <BLANKLINE>
            === feedback 1 ===
            Verdict: correct.
            <BLANKLINE>
        """
        parts = [f"=== prompt ===\n{self.prompt}"]
        for number, (code, feedback) in enumerate(self.turns, start=1):
            parts.append(f"=== submission {number} ===\n{fenced(printable_text(code), 'python')}")
            parts.append(f"=== feedback {number} ===\n{feedback}")
        return "\n\n".join(parts) + "\n"
