"""How many tokens an episode may have, and whether another whole reply fits into them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Context"]


@dataclass(frozen=True)
class Context:
    """What limits an episode in tokens.

    Attributes:
        most_tokens: Longest prompt with completion, the last reply included; infinite where nothing limits it.
        reply_tokens: Longest reply that the trainer samples.
    """

    most_tokens: float
    reply_tokens: int

    @classmethod
    def of(cls, trainer: Any, most_tokens: int | None) -> Context:
        """The context of a trainer's model.

        Args:
            trainer: A ``GRPOTrainer``.
            most_tokens: Longest prompt with completion; ``None`` takes the model's own limit.
        """
        limit: float | None = most_tokens
        if limit is None:
            limit = getattr(trainer.model.config.get_text_config(), "max_position_embeddings", None)
        return cls(float("inf") if limit is None else limit, _reply_tokens(trainer))

    def has_room_after(self, tokens: int) -> bool:
        """Whether a whole reply fits behind so many tokens."""
        return tokens + self.reply_tokens <= self.most_tokens


def _reply_tokens(trainer: Any) -> int:
    """The trainer's own limit; both samplers let ``generation_kwargs`` override ``max_completion_length``."""
    name = "max_tokens" if trainer.use_vllm else "max_new_tokens"
    return int((trainer.args.generation_kwargs or {}).get(name) or trainer.max_completion_length)
