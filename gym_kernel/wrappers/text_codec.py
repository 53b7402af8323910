"""``TextCodec``: any tokenizer, asked for exactly the tokens of a text and exactly the text of tokens."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from gym_kernel.errors import ConfigurationError
from gym_kernel.transcripts import Owner, Segment
from gym_kernel.wrappers.byte_tokenizer import ByteTokenizer

__all__ = ["TextCodec"]

# Hugging Face's fast tokenizers raise "Already borrowed" when threads of a vector environment share one.
_ONE_AT_A_TIME = Lock()

# What libraries add, drop or refuse unless told otherwise, by the names that they give it.
# The first is Hugging Face's, which warns of the second; the second is `tiktoken`'s, which refuses the first.
_EXACT_ENCODINGS: tuple[dict[str, Any], ...] = ({"add_special_tokens": False}, {"disallowed_special": ()})
_EXACT_DECODING: dict[str, Any] = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}

_SAME_TOKENIZER = (
    "Give FeedbackMask the tokenizer that the policy samples with: FeedbackMask(env, tokenizer)."
)
_WHOLE = (
    "The tokenizer pads or truncates, and a transcript needs each text's own tokens, all of them. Call its methods "
    "no_padding() and no_truncation()."
)


class TextCodec:
    """A tokenizer of Hugging Face, ``tokenizers``, ``tiktoken``, or another with ``encode`` and ``decode``.

    Args:
        tokenizer: An object whose ``encode(text)`` gives token ids and whose ``decode(token_ids)`` gives text.

    Raises:
        ConfigurationError: It has no such methods, it adds tokens to each text, or it pads or truncates.

    Example:
        >>> TextCodec(ByteTokenizer()).segment(Owner.POLICY, "hi")
        Segment(owner=<Owner.POLICY: 'policy'>, token_ids=(104, 105), text='hi')
    """

    def __init__(self, tokenizer: Any) -> None:
        if not all(callable(getattr(tokenizer, name, None)) for name in ("encode", "decode")):
            raise ConfigurationError(
                f"A tokenizer has the methods encode(text) and decode(token_ids), and {tokenizer!r} lacks them. "
                "Pass one of Hugging Face's, or None for one token a byte."
            )
        self._tokenizer = tokenizer
        _check_whole(tokenizer)
        with _ONE_AT_A_TIME:
            first, second = _EXACT_ENCODINGS
            self._encoding = _accepted(tokenizer.encode, first, "") or _accepted(tokenizer.encode, second, "")
            self._decoding = _accepted(tokenizer.decode, _EXACT_DECODING, [])
        added = self.encode("")
        if added:
            raise ConfigurationError(
                f"The tokenizer adds tokens to each text: of the empty text it makes {list(added)!r:.100}. They would "
                "count as the policy's own. Let its encode() take add_special_tokens=False and heed it, or turn them "
                "off in the tokenizer: add_bos_token=False and add_eos_token=False for many of Hugging Face's."
            )

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokens of a text, and no others: no beginning or end of sequence.

        Raises:
            ConfigurationError: The tokenizer of ``tokenizers`` has been told to pad or to truncate.
        """
        with _ONE_AT_A_TIME:
            encoded = self._tokenizer.encode(text, **self._encoding)
        if getattr(encoded, "overflowing", None) or 0 in getattr(encoded, "attention_mask", ()):
            # Hugging Face sets this in a tokenizer that it shares, long after it was looked at here.
            raise ConfigurationError(_WHOLE)
        # `tokenizers` gives an object that holds them.
        return tuple(int(token) for token in getattr(encoded, "ids", encoded))

    def decode(self, token_ids: Iterable[int]) -> str:
        """Text of tokens, special tokens written out."""
        with _ONE_AT_A_TIME:
            return str(self._tokenizer.decode(list(token_ids), **self._decoding))

    def segment(self, owner: Owner, text: str) -> Segment:
        """Encode a text once.

        A lone surrogate, which is no character and has no token, becomes U+FFFD. The tokenizer of bytes keeps it.
        """
        if not isinstance(self._tokenizer, ByteTokenizer):
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return Segment(owner, self.encode(text), text)

    def sampled(self, token_ids: tuple[int, ...]) -> Segment:
        """What a policy sampled, as it sampled it.

        Raises:
            ConfigurationError: The tokenizer cannot decode an id.
        """
        try:
            return Segment(Owner.POLICY, token_ids, self.decode(token_ids))
        except (LookupError, OverflowError) as error:
            raise ConfigurationError(
                f"The tokenizer cannot decode the tokens of a reply ({error!r:.200}). {_SAME_TOKENIZER}"
            ) from error

    def check_known(self, token_ids: Iterable[int]) -> None:
        """Refuse ids beyond the vocabulary, which some tokenizers decode to nothing.

        A model may have rows for more tokens than its tokenizer, so not every sampler can hold to this.

        Args:
            token_ids: Ids, from 0.

        Raises:
            ConfigurationError: An id is past the last of the vocabulary, where the tokenizer says how large it is.
        """
        highest = max(token_ids, default=-1)
        with _ONE_AT_A_TIME:
            size = _vocabulary_size(self._tokenizer)
            if size is None or highest < size:
                return
            # Ids may have gaps, so that the last is past the count. Asked last, because it lists the vocabulary.
            vocabulary: dict[str, int] = getattr(self._tokenizer, "get_vocab", dict)()
            size = max(size, max(vocabulary.values(), default=-1) + 1)
        if highest >= size:
            raise ConfigurationError(
                f"Token id {highest} is none of the tokenizer's, whose ids end at {size - 1}. {_SAME_TOKENIZER}"
            )


def _check_whole(tokenizer: Any) -> None:
    """Refuse a tokenizer of the library ``tokenizers`` that pads or cuts what it encodes."""
    if not callable(getattr(tokenizer, "no_padding", None)):
        return
    if getattr(tokenizer, "padding", None) or getattr(tokenizer, "truncation", None):
        raise ConfigurationError(_WHOLE)


def _vocabulary_size(tokenizer: Any) -> int | None:
    """Number of tokens, special and added ones included where the tokenizer counts them."""
    if hasattr(type(tokenizer), "__len__"):
        return len(tokenizer)
    # The library `tokenizers`.
    if callable(getattr(tokenizer, "get_vocab_size", None)):
        return int(tokenizer.get_vocab_size())
    # `tiktoken`, whose count is that of the last id; then whatever a wrapper tells.
    for name in ("n_vocab", "vocab_size"):
        if isinstance(size := getattr(tokenizer, name, None), int):
            return size
    return None


def _accepted(method: Callable[[Any], Any], options: dict[str, Any], nothing: Any) -> dict[str, Any]:
    """Those options that a method takes.

    Args:
        method: ``encode`` or ``decode``.
        options: What to pass where it is taken.
        nothing: An argument to try the method on.
    """
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):
        # Compiled methods may not say what they take.
        return _not_refused(method, options, nothing)
    named = {name: value for name, value in options.items() if name in parameters}
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        rest = {name: value for name, value in options.items() if name not in named}
        return {**named, **_not_refused(method, rest, nothing)}
    return named


def _not_refused(method: Callable[..., Any], options: dict[str, Any], nothing: Any) -> dict[str, Any]:
    """Those options that a method does not refuse when called: what takes ``**kwargs`` may hand them on."""
    taken = {}
    for name, value in options.items():
        try:
            method(nothing, **{name: value})
        except (TypeError, ValueError):
            continue
        taken[name] = value
    return taken
