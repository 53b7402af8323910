"""A task: a reference module, the sizes it is tried at, and what counts as solving it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum

__all__ = ["Domain", "Shape", "Task", "TaskScale", "Tolerance", "WorkPolicy"]


class TaskScale(str, Enum):
    """Which of a task's sizes is used: official ones on a GPU, small ones on a CPU."""

    OFFICIAL = "official"
    SMALL = "small"


class WorkPolicy(str, Enum):
    """Who may compute the values of the output."""

    OWN_KERNELS_ONLY = "own_kernels_only"
    MIXED = "mixed"


@dataclass(frozen=True)
class Domain:
    """Interval in which an input's values make sense for a task.

    Attributes:
        low: Lowest value, inclusive.
        high: Highest value, inclusive.
        fixed: Leave the input as ``get_inputs`` makes it (indices, masks, labels).
    """

    low: float = -math.inf
    high: float = math.inf
    fixed: bool = False


@dataclass(frozen=True)
class Tolerance:
    """What the general tolerance rule of the judge must know about a task.

    Attributes:
        absolute: Extra absolute error allowed on every element, 0 by default.
        reduction_length: Official number of terms summed into one output element; 1 for elementwise.
        reason: Why the task needs a tolerance of its own; required with ``absolute``.
        cap: Largest scaled error allowed whatever else holds, where that is less than the output dtype's own cap:
            outputs that are copies of inputs have no error at all.
    """

    absolute: float = 0.0
    reduction_length: int = 1
    reason: str = ""
    cap: float | None = None

    def __post_init__(self) -> None:
        if self.absolute and not self.reason:
            raise ValueError("A task with an absolute tolerance of its own must say why.")
        if self.cap is not None and not 0 <= self.cap < math.inf:
            raise ValueError(f"A tolerance's cap is a scaled error of 0 or more, not {self.cap}.")


@dataclass(frozen=True)
class Shape:
    """Sizes of a task under a name.

    Attributes:
        name: Letters, digits, ``_``, ``.`` and ``-``.
        official: Values for module-level names of the reference on a GPU.
        small: The same on a CPU.
    """

    name: str
    official: dict[str, int] = field(default_factory=dict)
    small: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """One thing to write a kernel for.

    The reference follows KernelBench's contract: a module with ``class Model(torch.nn.Module)``,
    ``get_inputs()`` and ``get_init_inputs()``. Its sizes are module-level integers, which
    ``sizes`` overrides for a scale.

    Attributes:
        id: Unique name, for instance ``"relu"``.
        suite: Path of the suite it belongs to, for instance ``"pilot/train"``.
        title: A few words for people.
        source: The reference module, exactly as the policy is shown it.
        sizes: For each scale, values for module-level names of the reference. A scale that is
            missing means the module as it stands.
        domains: One domain for each tensor that ``get_inputs`` returns. With none at all floating-point tensors
            may hold anything, and others are left as they are made.
        tolerance: See :class:`Tolerance`.
        work_policy: See :class:`WorkPolicy`.
        flops_per_element: Elementwise floating-point operations for each output element, added to
            what torch's FlopCounterMode counts.
        rows_independent: Whether ``forward`` treats the rows of dimension 0 of its inputs alone, so that
            an oracle may be computed in slices.
        template: Kernel template for ``TemplateAction``; empty where the task has none.
        alternatives: Other reference modules whose values are accepted as well, each at the full accuracy: for a
            function that has two usual forms. A submission must agree with one of them throughout a call.
        family: What kind of operation it is, for instance ``"normalisation"``; empty where nobody has said.
        level: Difficulty: 1 (one pass over memory), 2 (reductions, tiles) or 3 (fused, tensor cores, irregular).
        memory_gib: GPU memory that an evaluation at the official sizes may need, in GiB.
        shapes: Named sizes of which ``sizes`` holds one, see :meth:`at`.
    """

    id: str
    suite: str
    title: str
    source: str
    sizes: dict[TaskScale, dict[str, int]] = field(default_factory=dict)
    domains: tuple[Domain, ...] = (Domain(),)
    tolerance: Tolerance = Tolerance()
    work_policy: WorkPolicy = WorkPolicy.OWN_KERNELS_ONLY
    flops_per_element: float = 1.0
    rows_independent: bool = False
    template: str = ""
    alternatives: tuple[str, ...] = ()
    family: str = ""
    level: int = 1
    memory_gib: float = 24.0
    shapes: tuple[Shape, ...] = ()

    @property
    def base_id(self) -> str:
        """The id without the name of a shape."""
        return self.id.partition("@")[0]

    def at(self, shape: str) -> Task:
        """The same task at another of its shapes; its id is ``"<id>@<shape>"``.

        Raises:
            KeyError: The task has no shape of that name.
        """
        found = next((each for each in self.shapes if each.name == shape), None)
        if found is None:
            raise KeyError(shape)
        return replace(self, id=f"{self.base_id}@{shape}", sizes=_sizes_of(found))

    def at_first_shape(self) -> Task:
        """The same task under its plain id with the sizes of its first shape, if it has shapes."""
        return replace(self, sizes=_sizes_of(self.shapes[0])) if self.shapes else self

    def sizes_at(self, scale: TaskScale) -> dict[str, int]:
        """Names and values that the reference module is given at ``scale``."""
        return dict(self.sizes.get(scale, {}))


def _sizes_of(shape: Shape) -> dict[TaskScale, dict[str, int]]:
    return {TaskScale.OFFICIAL: dict(shape.official), TaskScale.SMALL: dict(shape.small)}
