"""What a judge says to a worker, and what a worker may claim in return.

Nothing in here carries an expected value, a seed or a verdict. What makes a submission correct is the bytes in the
output arena; what a worker says of it can only count against it, and its times are bounded by the judge's own clock
and by the roofline floor.
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
    "Awake",
    "Call",
    "Called",
    "Claim",
    "Evidence",
    "Failed",
    "FailureKind",
    "Fenced",
    "Idle",
    "KernelRecord",
    "Load",
    "Loaded",
    "Order",
    "Parameter",
    "Profile",
    "Ready",
    "Received",
    "TensorSlot",
    "Wake",
    "WorkEvidence",
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
    """Judge -> worker: the submission. No shared memory yet, because others may be on the device.

    ``stand_in_bytes`` of device memory may be used to compile ahead; with 0, what Triton has to compile is compiled
    at its first launch.
    """

    code: str
    init_arguments: tuple[Any, ...]
    arguments: tuple[Argument, ...]
    outputs: tuple[TensorSlot, ...]
    parameters: tuple[Parameter, ...]
    stand_in_bytes: int = 0


class Attach(_Frame, frozen=True, tag="attach"):
    """Judge -> worker, once the device is its own: the shared memory.

    Beside it travel the descriptors of ``arenas``, in order: the input arenas, the output arena, and, where
    there are parameters, the parameter arena.
    """

    arenas: tuple[ArenaSpec, ...]
    input_arenas: int


class Idle(_Frame, frozen=True, tag="idle"):
    """Judge -> worker: go through the motions of a call without one, behind a spin of this length.

    What it takes by the judge's clock is what a call costs beside the submission's own work.
    """

    spin_us: float


class Call(_Frame, frozen=True, tag="call"):
    """Judge -> worker: run ``forward`` once on the contents of an input arena, behind a spin of this length.

    The output is copied into the output arena as soon as the time is taken.

    Attributes:
        arena: Number of the input arena.
        spin_us: Length of the spin; 0 where nothing is queued.
        profiled: Whether the GPU's kernels are recorded too.
        canary: Operator that the harness runs afterwards, to be found in the evidence; empty for none.
    """

    arena: int
    spin_us: float
    profiled: bool = False
    canary: str = ""


class Fenced(_Frame, frozen=True, tag="fenced"):
    """Worker -> judge: confined to this tier; the device is not touched yet."""

    isolation: str


class Wake(_Frame, frozen=True, tag="wake"):
    """Judge -> worker: make the device context now, while nothing is timed."""


class Awake(_Frame, frozen=True, tag="awake"):
    """Worker -> judge: the device context is made; what is still to be made ready disturbs nobody."""


class Ready(_Frame, frozen=True, tag="ready"):
    """Worker -> judge: everything is ready, no submission seen yet."""


class Received(_Frame, frozen=True, tag="received"):
    """Worker -> judge: the submission is here and nothing of it has run; from now on what happens is its doing."""


class Loaded(_Frame, frozen=True, tag="loaded"):
    """Worker -> judge: ``ModelNew`` is constructed."""


class Attached(_Frame, frozen=True, tag="attached"):
    """Worker -> judge: the shared memory is mapped and the parameters are copied."""


class KernelRecord(_Frame, frozen=True):
    """A GPU kernel as CUPTI saw it.

    Attributes:
        name: Its demangled name.
        duration_us: How long it ran, in microseconds.
        bookkeeping: Whether an operator on whole numbers, which the dispatch mode saw, launched it.
    """

    name: str
    duration_us: float
    bookkeeping: bool = False


class Profile(_Frame, frozen=True):
    """What the profiler saw of a call.

    Attributes:
        operations: Every torch operator that ran, nested ones and other threads' included.
        hidden: Those that computed, or could have, where the dispatch mode did not see them.
        saw_kernels: Whether GPU kernels were recorded; only then do the following fields say something.
        kernels: Every GPU kernel, in the order of their starts.
        kernels_us: Time that the kernels of ``forward`` took, in microseconds.
        own_us: The part of it that kernels took which are no library's, summed, in microseconds.
        moved_us: The part of it that copies and fills of a library took, summed, in microseconds.
        unjoined: Names of kernels that still ran when the current stream had come to the end of ``forward``.
        own_kernels: Names of the kernels that Triton compiled for the submission.
    """

    operations: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    saw_kernels: bool = False
    kernels: tuple[KernelRecord, ...] = ()
    kernels_us: float = 0.0
    own_us: float = 0.0
    moved_us: float = 0.0
    unjoined: tuple[str, ...] = ()
    own_kernels: tuple[str, ...] = ()


class WorkEvidence(_Frame, frozen=True):
    """Who did the work of one call.

    Attributes:
        operations: Torch operators that computed or moved values, for instance ``"aten::relu"``.
        bookkeeping: Torch operators on whole numbers that stand for no values.
        conversions: Ways out of torch that large tensors took, for instance ``"Tensor.numpy"``.
        stored_elements: Elements that kernels decided about in Triton's interpreter, anywhere, masked ones too.
        own_elements: Elements of the outputs that are not zero and hold what those kernels stored.
        zero_elements: Elements of the outputs that are zero; counted in host memory only.
        compiled: Functions that torch.compile, and kernels that Inductor has compiled so far.
        profile: What the profiler saw.
    """

    operations: tuple[str, ...] = ()
    bookkeeping: tuple[str, ...] = ()
    conversions: tuple[str, ...] = ()
    stored_elements: int = 0
    own_elements: int = 0
    zero_elements: int = 0
    compiled: int = 0
    profile: Profile = Profile()


class Called(_Frame, frozen=True, tag="called"):
    """Worker -> judge: one call is done, its output is in the output arena, the device is idle.

    Attributes:
        elapsed_us: What the worker's own clock says.
        launch_us: Host time of ``forward``, which the next spin should outlast.
    """

    elapsed_us: float
    launch_us: float


class Evidence(_Frame, frozen=True, tag="evidence"):
    """Worker -> judge, after every :class:`Called`: what was seen of it. Not part of any timing.

    Attributes:
        work: Who did the work.
        libraries: Shared objects of the submission's own that are loaded; counted in profiled calls.
    """

    work: WorkEvidence
    libraries: int = 0


class Failed(_Frame, frozen=True, tag="failed"):
    """Worker -> judge: the submission failed; nothing more will come."""

    kind: FailureKind
    message: str
    detail: str = ""


Order = Union[Wake, Idle, Load, Attach, Call]
Claim = Union[Fenced, Awake, Ready, Received, Loaded, Attached, Called, Evidence, Failed]
