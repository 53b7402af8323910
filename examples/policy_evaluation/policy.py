"""What a policy is: something that answers conversations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Conversation", "Decoding", "Policy", "PolicyError", "PolicyFacts"]


class PolicyError(Exception):
    """A policy could not answer; the message says what to do. The run stops, and can be resumed."""


@dataclass(frozen=True)
class Decoding:
    """How a model's reply is made. Always greedy (temperature 0).

    Attributes:
        max_new_tokens: Longest reply, in tokens.
        template_options: Arguments for the chat template, for instance ``{"enable_thinking": False}``.
    """

    max_new_tokens: int = 2_048
    template_options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PolicyFacts:
    """Who answers.

    Attributes:
        kind: ``"replies"``, ``"hugging face"`` or ``"endpoint"``.
        name: The folder, or the model's name.
        adapter: PEFT adapter on top of the model, or ``""``.
        endpoint: Base URL, or ``""``.
        decoding: How replies are made; ``None`` where they were written before.
    """

    kind: str
    name: str
    adapter: str = ""
    endpoint: str = ""
    decoding: Decoding | None = None

    def label(self) -> str:
        """A short name for tables and pictures."""
        if self.kind == "replies":
            return Path(self.name).name
        return f"{self.name} + {self.adapter}" if self.adapter else self.name


@dataclass(frozen=True)
class Conversation:
    """An episode as the policy sees it.

    Attributes:
        task_id: The task; a model is not shown it.
        observations: The prompt, then feedback after each reply; the last one is to be answered.
        replies: The policy's replies so far, one fewer than the observations.
    """

    task_id: str
    observations: tuple[str, ...]
    replies: tuple[str, ...] = ()

    @property
    def turn(self) -> int:
        """Number of the reply that is due, from 1."""
        return len(self.observations)

    def messages(self) -> list[dict[str, str]]:
        """The conversation as chat messages, observations as the user's."""
        messages = []
        for number, observation in enumerate(self.observations):
            messages.append({"role": "user", "content": observation})
            if number < len(self.replies):
                messages.append({"role": "assistant", "content": self.replies[number]})
        return messages

    def answered(self, reply: str, observation: str) -> Conversation:
        """The conversation after one more reply and the feedback on it."""
        return Conversation(self.task_id, (*self.observations, observation), (*self.replies, reply))


class Policy(Protocol):
    """Answers conversations; called from several threads at once."""

    @property
    def facts(self) -> PolicyFacts:
        """Who this is."""

    @property
    def batch(self) -> int:
        """How many conversations are best answered in one call."""

    def replies(self, conversations: Sequence[Conversation]) -> list[str | None]:
        """Answer each conversation; ``None`` where the policy has nothing more to say.

        Raises:
            PolicyError: No answer can be had.
        """

    def cancel(self) -> None:
        """Give up soon: calls that wait for an answer raise :class:`PolicyError`. Called from any thread."""
