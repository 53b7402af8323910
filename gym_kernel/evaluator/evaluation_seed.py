"""The secret seeds of one evaluation."""

from __future__ import annotations

import hashlib
import random
import secrets

__all__ = ["SeedSequence"]


class SeedSequence:
    """Seeds for every call of an evaluation, from one root.

    Args:
        root: Root seed of a replay, or ``None`` to draw one from the operating system.
    """

    def __init__(self, root: int | None = None) -> None:
        self.root = secrets.randbits(62) if root is None else root
        self._count = 0
        #: Choices that are not contents: which kind, which buffer.
        self.choices = random.Random(self._derive("choices"))
        #: Of the reference's parameters, which are the same in every call.
        self.parameters = self._derive("parameters")

    def next(self) -> int:
        """The next seed, in ``[0, 2**62)``."""
        self._count += 1
        return self._derive(f"call {self._count}")

    def _derive(self, label: str) -> int:
        digest = hashlib.blake2b(f"{self.root}:{label}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 2
