"""``ByteTokenizer``: one token for each byte of UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from gym_kernel.errors import ConfigurationError

__all__ = ["ByteTokenizer"]

_ERRORS = "gym_kernel.surrogatepass_or_replace"


def _surrogate_or_replacement(error: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogatepass")(error)
    except UnicodeError:
        return codecs.lookup_error("replace")(error)


codecs.register_error(_ERRORS, _surrogate_or_replacement)


class ByteTokenizer:
    r"""One token for each byte of UTF-8: 256 tokens, no special ones, no files.

    Any ``str`` survives ``decode(encode(text))``, one with lone surrogates too. Bytes that are not UTF-8, which
    a policy may well sample, decode to U+FFFD.

    Example:
        >>> tokenizer = ByteTokenizer()
        >>> tokenizer.encode("\u20ac5")
        [226, 130, 172, 53]
        >>> tokenizer.decode([226, 130, 172, 53, 255]) == "\u20ac5\ufffd"
        True
    """

    def encode(self, text: str) -> list[int]:
        """Bytes of a text."""
        return list(text.encode("utf-8", "surrogatepass"))

    def decode(self, token_ids: Iterable[int]) -> str:
        """Text of bytes.

        Raises:
            ConfigurationError: An id is over 255.
        """
        try:
            return bytes(token_ids).decode("utf-8", _ERRORS)
        except ValueError as error:
            raise ConfigurationError(
                "A token id is over 255, so it is not of this tokenizer of bytes. "
                "Give FeedbackMask the tokenizer that the policy samples with: FeedbackMask(env, tokenizer)."
            ) from error
