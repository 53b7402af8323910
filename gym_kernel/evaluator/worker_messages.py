"""What a judge says to a worker, and what a worker may claim in return.

Nothing in here carries an expected value, a seed or a verdict. A worker's words can only ever count
against its submission: what makes one correct is the bytes in the output arena.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Union

import msgspec

__all__ = [
    "ArenaSpec",
    "Argument",
    "Attach",
    "Attached",
    "Call",
    "Called",
    "Claim",
    "Failed",
    "FailureKind",
    "Load",
    "Loaded",
    "Order",
    "Parameter",
    "Ready",
    "TensorSlot",
]


class FailureKind(str, Enum):
    """What went wrong in a worker, in its own words."""

    SOURCE = "source"
    COMPILE = "compile"
    RUNTIME = "runtime"
    MEMORY = "memory"
    CONTRACT = "contract"


class _Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every frame: immutable, no unknown fields."""


class TensorSlot(_Frame, frozen=True):
    """A contiguous tensor inside an arena. ``dtype`` is torch's name without the prefix."""

    offset_bytes: int
    shape: tuple[int, ...]
    dtype: str


class Argument(_Frame, frozen=True):
    """One argument of ``forward``: a tensor of the input arena, or a plain value."""

    slot: TensorSlot | None
    value: Any = None


class Parameter(_Frame, frozen=True):
    """One parameter or buffer of the reference, by its name in ``state_dict``."""

    name: str
    slot: TensorSlot


class ArenaSpec(_Frame, frozen=True):
    """A shared allocation whose descriptor travels beside the frame."""

    size_bytes: int
    writable: bool


class Load(_Frame, frozen=True, tag="load"):
    """Judge -> worker: the submission. No shared memory yet, because others may be on the device."""

    code: str
    init_arguments: tuple[Any, ...]
    arguments: tuple[Argument, ...]
    outputs: tuple[TensorSlot, ...]
    parameters: tuple[Parameter, ...]


class Attach(_Frame, frozen=True, tag="attach"):
    """Judge -> worker, once the device is its own: the shared memory.

    Beside it travel the descriptors of ``arenas``, in order: the input arenas, the output arena, and, where
    there are parameters, the parameter arena.
    """

    arenas: tuple[ArenaSpec, ...]
    input_arenas: int


class Call(_Frame, frozen=True, tag="call"):
    """Judge -> worker: run ``forward`` once on the contents of an input arena."""

    arena: int
    trace: bool = False


class Ready(_Frame, frozen=True, tag="ready"):
    """Worker -> judge: fenced in, device context made, no submission seen yet."""

    isolation: str
    start_s: float


class Loaded(_Frame, frozen=True, tag="loaded"):
    """Worker -> judge: ``ModelNew`` is constructed."""


class Attached(_Frame, frozen=True, tag="attached"):
    """Worker -> judge: the shared memory is mapped and the parameters are copied."""


class Called(_Frame, frozen=True, tag="called"):
    """Worker -> judge: one call is done and its output is in the output arena.

    ``operations`` names the torch operators a traced call went through.
    """

    elapsed_us: float
    operations: tuple[str, ...] = ()


class Failed(_Frame, frozen=True, tag="failed"):
    """Worker -> judge: the submission failed; nothing more will come."""

    kind: FailureKind
    message: str
    detail: str = ""


Order = Union[Load, Attach, Call]
Claim = Union[Ready, Loaded, Attached, Called, Failed]
