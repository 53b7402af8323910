"""Who wrote which tokens of an episode, and the loss mask and labels that follow from it."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from gym_kernel.errors import ConfigurationError

__all__ = [
    "IGNORED_LABEL",
    "Owner",
    "SampledReply",
    "Segment",
    "labels",
    "prompt_and_completion",
    "token_ids_and_mask",
    "transcript_text",
]

IGNORED_LABEL = -100
"""Label that PyTorch's cross entropy, and so every trainer, leaves out of the loss."""


class Owner(Enum):
    """Who a segment's tokens come from."""

    POLICY = "policy"
    ENVIRONMENT = "environment"


@dataclass(frozen=True)
class Segment:
    """A run of tokens of one owner.

    Attributes:
        owner: ``POLICY`` for tokens that the policy sampled, ``ENVIRONMENT`` for everything it was given:
            prompt, feedback, and what a chat template puts round them.
        token_ids: The tokens, in order.
        text: What they stand for, special tokens written out.
    """

    owner: Owner
    token_ids: tuple[int, ...]
    text: str


class SampledReply(str):
    """A policy's reply that remembers the tokens it was sampled as.

    A ``str`` in every other respect, so it passes through vector environments and wrappers. Text made from it,
    by slicing or ``strip`` for instance, is a plain ``str`` again.

    Args:
        text: What the environment is to judge: usually the decoded tokens without special ones.
        token_ids: The tokens as sampled, including an end-of-turn token that the policy sampled; any flat
            sequence of integers, for instance a one-dimensional array or tensor.

    Raises:
        ConfigurationError: ``token_ids`` is not a flat sequence of whole numbers from 0, or is empty beside a
            text that is not.

    Example:
        >>> reply = SampledReply("x = 1", token_ids=[87, 284, 352])
        >>> reply, reply.token_ids
        ('x = 1', (87, 284, 352))
    """

    token_ids: tuple[int, ...]

    def __new__(cls, text: str, token_ids: Iterable[int]) -> SampledReply:  # noqa: D102
        reply = super().__new__(cls, text)
        reply.token_ids = _checked_ids(token_ids)
        if text and not reply.token_ids:
            raise ConfigurationError(
                "token_ids is empty, but the reply has text. Pass the ids that the policy sampled, or step with "
                "a plain str to have it encoded."
            )
        return reply

    def __getnewargs__(self) -> tuple[str, tuple[int, ...]]:  # type: ignore[override]
        return str(self), self.token_ids


def token_ids_and_mask(segments: Iterable[Segment]) -> tuple[list[int], list[int]]:
    """Tokens of an episode, and its loss mask.

    Args:
        segments: Segments in order.

    Returns:
        Token ids, and as many numbers: 1 where the policy sampled the token, 0 elsewhere.

    Example:
        >>> token_ids_and_mask([Segment(Owner.ENVIRONMENT, (5, 6), "ab"), Segment(Owner.POLICY, (7,), "c")])
        ([5, 6, 7], [0, 0, 1])
    """
    token_ids: list[int] = []
    loss_mask: list[int] = []
    for segment in segments:
        token_ids += segment.token_ids
        loss_mask += [int(segment.owner is Owner.POLICY)] * len(segment.token_ids)
    return token_ids, loss_mask


def labels(segments: Iterable[Segment]) -> list[int]:
    """Labels for a causal language model: the token where the policy sampled it, else ``IGNORED_LABEL``.

    They stand at the tokens' own positions, as the models of Hugging Face want them: the model shifts them.

    Args:
        segments: Segments in order.

    Returns:
        One label for each token.

    Example:
        >>> labels([Segment(Owner.ENVIRONMENT, (5, 6), "ab"), Segment(Owner.POLICY, (7,), "c")])
        [-100, -100, 7]
    """
    token_ids, loss_mask = token_ids_and_mask(segments)
    return [token if kept else IGNORED_LABEL for token, kept in zip(token_ids, loss_mask, strict=True)]


def prompt_and_completion(segments: Iterable[Segment]) -> tuple[list[int], list[int], list[int]]:
    """Split an episode where the policy first speaks, as trainers want it.

    The three lists are what TRL calls ``prompt_ids``, ``completion_ids`` and ``env_mask``, and verl
    ``prompt_ids``, ``response_ids`` and ``response_mask``.

    Args:
        segments: Segments in order.

    Returns:
        Tokens before the policy's first, all tokens from there on, and the loss mask of the latter.

    Example:
        >>> prompt_and_completion([Segment(Owner.ENVIRONMENT, (5, 6), "ab"), Segment(Owner.POLICY, (7,), "c")])
        ([5, 6], [7], [1])
    """
    token_ids, loss_mask = token_ids_and_mask(segments)
    start = loss_mask.index(1) if 1 in loss_mask else len(loss_mask)
    return token_ids[:start], token_ids[start:], loss_mask[start:]


def transcript_text(segments: Iterable[Segment]) -> str:
    """The conversation as one text, special tokens written out."""
    return "".join(segment.text for segment in segments)


def _checked_ids(token_ids: Iterable[int]) -> tuple[int, ...]:
    try:
        checked = tuple(operator.index(token) for token in token_ids)
    except TypeError as error:
        raise ConfigurationError(
            f"token_ids must be a flat sequence of whole numbers, the ids of one reply, not {token_ids!r}."
        ) from error
    if any(token < 0 for token in checked):
        raise ConfigurationError(
            f"token_ids holds {min(checked)}, and no token has a negative id. Remove the padding first."
        )
    return checked
