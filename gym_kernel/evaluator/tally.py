"""Running totals of a comparison, over the chunks that do not agree at once."""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["NOWHERE", "Details", "Tally"]

#: Position of the first wrong element where none is wrong.
NOWHERE = float(1 << 60)


class Details(NamedTuple):
    """Statistics of one chunk as they come back from the device; positions count elements of the whole output."""

    mismatched: float
    max_abs: float
    max_rel: float
    squares: float
    worst: float
    worst_position: float
    worst_actual: float
    first_wrong: float
    first_wrong_column: float
    nans: float
    infs: float
    expected_nonfinite: float


class Tally:
    """Running totals over chunks, on the host."""

    def __init__(self) -> None:
        self.mismatched = self.nans = self.infs = self.expected_nonfinite = 0
        self.max_abs = self.max_rel = self.squares = 0.0
        self.worst = -1.0
        self.worst_position = 0
        self.worst_actual = math.nan
        self.first_wrong = self.first_wrong_column = NOWHERE

    def merge_clean(self, max_abs: float, max_rel: float, squares: float) -> None:
        """Add a chunk in which nothing is wrong; ``squares`` is the sum of its scaled errors' squares."""
        self.squares += squares
        self.max_abs = max(self.max_abs, max_abs)
        self.max_rel = max(self.max_rel, max_rel)

    def merge(self, details: Details) -> None:
        """Add a chunk that was looked into."""
        self.merge_clean(details.max_abs, details.max_rel, details.squares)
        self.mismatched += int(details.mismatched)
        self.nans += int(details.nans)
        self.infs += int(details.infs)
        self.expected_nonfinite += int(details.expected_nonfinite)
        self.first_wrong = min(self.first_wrong, details.first_wrong)
        self.first_wrong_column = min(self.first_wrong_column, details.first_wrong_column)
        if details.worst > self.worst:
            self.worst = details.worst
            self.worst_position = int(details.worst_position)
            self.worst_actual = details.worst_actual
