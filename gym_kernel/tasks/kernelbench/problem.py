"""One problem of KernelBench, as it was read and before it is made a task."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["LEVELS", "Problem"]

#: Levels of KernelBench and the number of problems in each at the pinned revision.
LEVELS = {1: 100, 2: 100, 3: 50, 4: 20}


@dataclass(frozen=True)
class Problem:
    """A problem's place and text.

    Attributes:
        level: 1 to 4.
        number: Number inside the level, from 1.
        name: File name without ``.py``, for instance ``"19_ReLU"``.
        source: The reference module, exactly as KernelBench has it.
    """

    level: int
    number: int
    name: str
    source: str

    @property
    def suite(self) -> str:
        """Suite of the problem's task, for instance ``"kernelbench/level1"``."""
        return f"kernelbench/level{self.level}"

    @property
    def place(self) -> str:
        """Suite and number, for instance ``"kernelbench/level1/19"``."""
        return f"{self.suite}/{self.number}"

    @property
    def task_id(self) -> str:
        """Id of the problem's task, for instance ``"kb_level1_19_relu"``."""
        return f"kb_level{self.level}_{re.sub('[^a-z0-9]+', '_', self.name.lower()).strip('_')}"

    @property
    def title(self) -> str:
        """The name in words, for instance ``"ReLU"``."""
        words = " ".join(self.name.partition("_")[2].replace("_", " ").split())
        return words or self.name
