"""The example kernels as benchmarks submit them: every time a text that no cache has seen."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

__all__ = ["Kernel", "Language", "renamed"]

_EXAMPLES = Path(__file__).parents[1] / "examples" / "kernels"
# Names of one run are no other run's: compilers keep caches on disk.
_RUN = secrets.token_hex(4)

_TRITON_KERNEL = re.compile(r"^@triton\.jit\b[^\n]*\ndef\s+(\w+)", re.MULTILINE)
_CUDA_KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\s*\(")
_EXTENSION = re.compile(r"load_inline\(\s*name=\"(\w+)\"")


class Language(str, Enum):
    """What a kernel is written in."""

    TRITON = "triton"
    CUDA = "cuda"
    CPP = "cpp"


@dataclass(frozen=True)
class Kernel:
    """One example kernel.

    Attributes:
        task: The task that it solves.
        language: What it is written in.
    """

    task: str
    language: Language = Language.TRITON

    @property
    def label(self) -> str:
        """The task, with the language where it is not Triton: ``"mingpt_gelu (CUDA)"``."""
        names = {Language.CUDA: " (CUDA)", Language.CPP: " (C++)"}
        return self.task + names.get(self.language, "")

    @property
    def source(self) -> str:
        """The example as it stands."""
        folder = _EXAMPLES if self.language is Language.TRITON else _EXAMPLES / self.language.value
        return (folder / f"{self.task}.py").read_text(encoding="utf-8")

    def variant(self, number: int) -> str:
        """The example with names that belong to this run and ``number`` alone, so that it has to be compiled."""
        return renamed(self.source, f"{_RUN}_{number}")


def renamed(source: str, suffix: str) -> str:
    """A module with ``_<suffix>`` added to the names of its kernels and of its extensions.

    Args:
        source: A module with Triton kernels, or with C++ or CUDA for ``load_inline``.
        suffix: Letters, digits and ``_``.

    Raises:
        ValueError: It has neither.
    """
    kernels = {*_TRITON_KERNEL.findall(source), *_CUDA_KERNEL.findall(source)}
    extensions = set(_EXTENSION.findall(source))
    if not kernels and not extensions:
        raise ValueError(
            "The module has no Triton kernel and no load_inline(name=...) that could be renamed."
        )
    for name in kernels:
        source = re.sub(rf"\b{name}\b", f"{name}_{suffix}", source)
    for name in extensions:
        source = source.replace(f'name="{name}"', f'name="{name}_{suffix}"')
    return source
