"""What stands round prompts, replies and feedback in a transcript: nothing, or a chat template's headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gym_kernel.errors import ConfigurationError
from gym_kernel.transcripts import Owner, Segment
from gym_kernel.wrappers.text_codec import TextCodec

__all__ = ["ChatFormat", "ConversationFormat", "PlainFormat", "conversation_format"]

# Plain words, so that no template reads anything into them and no tokenizer refuses them.
_REQUEST, _REPLY, _FEEDBACK = "gymkernelrequest", "gymkernelreply", "gymkernelfeedback"


class ConversationFormat(Protocol):
    """How a conversation becomes environment segments, each appended once and never changed again."""

    def opening(self, prompt: str) -> Segment:
        """Everything before the policy's first token."""

    def between(self, reply: Segment, feedback: str) -> Segment:
        """Everything between a reply and the policy's next token."""

    def closing(self, reply: Segment, feedback: str) -> Segment:
        """Everything after the last reply."""


@dataclass(frozen=True)
class PlainFormat:
    """Prompt, reply and feedback one after the other, with nothing in between."""

    codec: TextCodec

    def opening(self, prompt: str) -> Segment:
        """The prompt."""
        return self.codec.segment(Owner.ENVIRONMENT, prompt)

    def between(self, reply: Segment, feedback: str) -> Segment:
        """The feedback."""
        return self.codec.segment(Owner.ENVIRONMENT, feedback)

    def closing(self, reply: Segment, feedback: str) -> Segment:
        """The feedback."""
        return self.codec.segment(Owner.ENVIRONMENT, feedback)


class ChatFormat:
    """Prompt and feedback as user messages of a chat template, replies as the assistant's.

    The whole conversation is never rendered again: that would tokenise replies anew, and some templates rewrite
    earlier turns (Qwen3's drops their thinking). What follows a reply is taken instead from a conversation of
    three messages, request, reply and feedback: the template's own text after the reply.

    A policy that stops by itself has sampled the end-of-turn token, and then it is not repeated. A reply that was
    cut short has none, and it becomes the environment's.

    Args:
        codec: The tokenizer.
        tokenizer: The same, for its ``apply_chat_template``.
        template_kwargs: More variables for the template, for instance ``{"enable_thinking": False}``.

    Raises:
        ConfigurationError: The template fails on, or loses, a message of such a conversation.
    """

    def __init__(self, codec: TextCodec, tokenizer: Any, template_kwargs: Mapping[str, Any]) -> None:
        self._codec = codec
        self._tokenizer = tokenizer
        self._template_kwargs = dict(template_kwargs)
        probe = self._after_reply(_FEEDBACK, more=True)
        if _FEEDBACK not in probe:
            raise ConfigurationError(
                "The tokenizer's chat template leaves out a user message after a reply. "
                "Set tokenizer.chat_template to one that renders conversations of several turns."
            )
        header = probe.partition(_FEEDBACK)[0]
        self._header = codec.encode(header)
        self._end_of_turn = _first_special_token(tokenizer, header)

    def opening(self, prompt: str) -> Segment:
        """System message if the template has one, the prompt, and the header of the reply."""
        messages = [{"role": "user", "content": prompt}]
        return self._codec.segment(Owner.ENVIRONMENT, self._render(messages, more=True))

    def between(self, reply: Segment, feedback: str) -> Segment:
        """End of the reply's turn if the policy did not sample it, the feedback, and the next reply's header."""
        return self._without_sampled_end(reply, self._after_reply(feedback, more=True))

    def closing(self, reply: Segment, feedback: str) -> Segment:
        """End of the reply's turn if the policy did not sample it, and the feedback."""
        return self._without_sampled_end(reply, self._after_reply(feedback, more=False))

    def _after_reply(self, feedback: str, more: bool) -> str:
        messages = [
            {"role": "user", "content": _REQUEST},
            {"role": "assistant", "content": _REPLY},
            {"role": "user", "content": feedback},
        ]
        _, found, after = self._render(messages, more=more).partition(_REPLY)
        if not found:
            raise ConfigurationError(
                "The tokenizer's chat template leaves out the assistant's reply. "
                "Set tokenizer.chat_template to one that renders conversations of several turns."
            )
        return after

    def _without_sampled_end(self, reply: Segment, after: str) -> Segment:
        segment = self._codec.segment(Owner.ENVIRONMENT, after)
        count = self._already_sampled(reply.token_ids, segment.token_ids)
        if not count:
            return segment
        # Cut as tokens: a tokenizer may encode a text's beginning otherwise than the same text further on.
        rest = segment.token_ids[count:]
        return Segment(Owner.ENVIRONMENT, rest, self._codec.decode(rest))

    def _already_sampled(self, reply: tuple[int, ...], after: tuple[int, ...]) -> int:
        """How many of the tokens that follow a reply are the end of turn that the policy sampled itself."""
        end = self._end_of_turn
        if end is None or end not in after:
            return 0
        first = after.index(end) + 1
        # Some templates end a turn with several tokens.
        for count in range(len(self._header), first - 1, -1):
            if reply[-count:] == after[:count]:
                return count
        return first if reply[-1:] == (end,) else 0

    def _render(self, messages: list[dict[str, str]], more: bool) -> str:
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=more, **self._template_kwargs
                )
            )
        except Exception as error:
            roles = ", ".join(message["role"] for message in messages)
            raise ConfigurationError(
                f"The tokenizer's chat template fails on a conversation of {roles}: {error} "
                "Set tokenizer.chat_template to one that takes these, or to None for plain text."
            ) from error


def conversation_format(
    codec: TextCodec, tokenizer: Any, template_kwargs: Mapping[str, Any]
) -> ConversationFormat:
    """The tokenizer's chat format, or the plain one where it has no chat template.

    Raises:
        ConfigurationError: The chat template cannot render these conversations, or there are arguments for a
            template but none.
    """
    if callable(getattr(tokenizer, "apply_chat_template", None)) and getattr(
        tokenizer, "chat_template", None
    ):
        return ChatFormat(codec, tokenizer, template_kwargs)
    if template_kwargs:
        raise ConfigurationError(
            f"chat_template_kwargs is {dict(template_kwargs)!r}, but the tokenizer has no chat template. "
            "Set tokenizer.chat_template, or leave chat_template_kwargs out."
        )
    return PlainFormat(codec)


def _first_special_token(tokenizer: Any, text: str) -> int | None:
    """The earliest special token in a text, the longest where several begin there."""
    vocabulary: dict[str, int] = getattr(tokenizer, "get_added_vocab", dict)()
    found = [token for token in vocabulary if token and token in text]
    if not found:
        return None
    return vocabulary[min(found, key=lambda token: (text.index(token), -len(token)))]
