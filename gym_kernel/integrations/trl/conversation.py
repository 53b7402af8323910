"""One rollout as tokens: the prompt, then replies of the policy and what the environment says between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gym_kernel.integrations.trl.context import Context
from gym_kernel.integrations.trl.episode import Episode
from gym_kernel.integrations.trl.generation import Sample
from gym_kernel.integrations.trl.prompts import Message
from gym_kernel.transcripts import Owner, Segment, prompt_and_completion
from gym_kernel.wrappers.chat_format import ChatFormat
from gym_kernel.wrappers.text_codec import TextCodec

__all__ = ["Chat", "Conversation"]


class Chat:
    """The trainer's tokenizer and chat template. Replies are never tokenised again.

    Args:
        trainer: A ``GRPOTrainer``.

    Raises:
        ConfigurationError: The chat template fails on, or loses, a message of a chat of several turns.
    """

    def __init__(self, trainer: Any) -> None:
        self._tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        self._template_kwargs = dict(trainer.chat_template_kwargs)
        self.codec = TextCodec(self._tokenizer)
        self.format = ChatFormat(self.codec, self._tokenizer, self._template_kwargs)

    def opening(self, messages: Sequence[Message]) -> Segment:
        """The messages up to the policy's first token.

        Args:
            messages: System message, if any, and the prompt.
        """
        rendered = self._tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True, **self._template_kwargs
        )
        return self.codec.segment(Owner.ENVIRONMENT, str(rendered))

    def text(self, sample: Sample) -> str:
        """A reply as the judge gets it, without special tokens."""
        return str(self._tokenizer.decode(list(sample.token_ids), skip_special_tokens=True))


@dataclass
class Conversation:
    """One rollout.

    Attributes:
        chat: How it becomes tokens.
        episode: What became of it so far.
        segments: Its tokens, each run with its owner.
        logprobs: Log-probabilities of the tokens after the prompt; 0 where the environment wrote them.
        open: Whether the policy may reply.
    """

    chat: Chat
    episode: Episode
    segments: list[Segment]
    logprobs: list[float] = field(default_factory=list)
    open: bool = True

    @property
    def token_ids(self) -> list[int]:
        """All of it, as the policy sees it."""
        return [token for segment in self.segments for token in segment.token_ids]

    def add_reply(self, sample: Sample) -> None:
        """Append what the policy sampled."""
        self.segments.append(self.chat.codec.sampled(sample.token_ids))
        self.logprobs += sample.logprobs

    def add_feedback(self, feedback: str, context: Context) -> None:
        """Append feedback on the last reply, or end the rollout where no further whole reply would fit.

        Args:
            feedback: What the environment says.
            context: What limits the rollout.
        """
        between = self.chat.format.between(self.segments[-1], feedback)
        if not context.has_room_after(len(self.token_ids) + len(between.token_ids)):
            self.open = False
            return
        self.segments.append(between)
        self.logprobs += [0.0] * len(between.token_ids)

    def split(self) -> tuple[list[int], list[int], list[int]]:
        """Prompt ids, completion ids, and for each of the latter 1 where the policy sampled it, else 0."""
        return prompt_and_completion(self.segments)
