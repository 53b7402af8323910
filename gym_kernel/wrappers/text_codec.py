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
_EXACT_ENCODING: dict[str, Any] = {"add_special_tokens": False, "disallowed_special": ()}
_EXACT_DECODING: dict[str, Any] = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}


class TextCodec:
    """A tokenizer of Hugging Face, ``tokenizers``, ``tiktoken``, or another with ``encode`` and ``decode``.

    Args:
        tokenizer: An object whose ``encode(text)`` gives token ids and whose ``decode(token_ids)`` gives text.

    Raises:
        ConfigurationError: It has no such methods.

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
        self._encoding = _accepted(tokenizer.encode, _EXACT_ENCODING)
        self._decoding = _accepted(tokenizer.decode, _EXACT_DECODING)
        if hasattr(tokenizer, "clean_up_tokenization_spaces"):
            # Hugging Face takes it among **kwargs.
            self._decoding["clean_up_tokenization_spaces"] = False

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokens of a text, and no others: no beginning or end of sequence."""
        with _ONE_AT_A_TIME:
            encoded = self._tokenizer.encode(text, **self._encoding)
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
        """What a policy sampled, as it sampled it."""
        return Segment(Owner.POLICY, token_ids, self.decode(token_ids))


def _accepted(method: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(method).parameters
    except ValueError:
        # Compiled methods may not say what they take.
        return {}
    return {name: value for name, value in options.items() if name in parameters}
