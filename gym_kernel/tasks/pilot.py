"""The ten tasks of the pilot: KernelBench level-1 activations and softmaxes, float32.

The references are plain files in :mod:`gym_kernel.tasks.references`, read as text. Official sizes are those
written in the files; the small ones below keep a Triton kernel with blocks of 4,096 elements under 32
programs, so that Triton's interpreter is quick, and most leave a tail that a kernel has to mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from gym_kernel.tasks.task import Domain, Task, TaskScale, Tolerance

__all__ = ["pilot_tasks"]

_TRAIN, _RESERVED, _HELDOUT = "pilot/train", "pilot/reserved", "pilot/heldout"

_EXACT = Tolerance()
_ROW_SUM = Tolerance(reduction_length=393_216)


@dataclass(frozen=True)
class _Row:
    """One line of the table below.

    ``flops`` counts each arithmetic operation of the formula, and each exp or tanh, as one: an
    under-count keeps the roofline a floor.
    """

    id: str
    suite: str
    title: str
    small: tuple[int, int]
    flops: float
    tolerance: Tolerance = _EXACT
    alternatives: tuple[str, ...] = ()
    memory_gib: float = 24.0


_ROWS = (
    _Row("relu", _TRAIN, "ReLU", (64, 1000), 1.0),
    _Row("leaky_relu", _TRAIN, "LeakyReLU", (64, 1024), 2.0),
    _Row("sigmoid", _TRAIN, "Sigmoid", (48, 1000), 4.0),
    _Row(
        "tanh",
        _TRAIN,
        "Tanh",
        (63, 1021),
        1.0,
        Tolerance(absolute=1e-6, reason="The usual form 2 * sigmoid(2x) - 1 cancels near zero."),
    ),
    # The reference's sigmoid is a tensor of its own.
    _Row("swish", _RESERVED, "Swish", (48, 1024), 5.0, memory_gib=32.0),
    _Row("hard_sigmoid", _RESERVED, "HardSigmoid", (50, 1250), 4.0),
    _Row("hard_tanh", _RESERVED, "HardTanh", (37, 1536), 2.0),
    _Row("softmax", _HELDOUT, "Softmax", (32, 1000), 5.0, _ROW_SUM),
    _Row("log_softmax", _HELDOUT, "LogSoftmax", (24, 5000), 5.0, _ROW_SUM),
    _Row("mingpt_gelu", _HELDOUT, "MinGPT GELU", (60, 1000), 9.0, alternatives=("gelu_erf",)),
)


@cache
def pilot_tasks() -> tuple[Task, ...]:
    """The ten tasks in the order training, reserved, held-out."""
    return tuple(_task(row) for row in _ROWS)


def _task(row: _Row) -> Task:
    batch_size, dim = row.small
    return Task(
        id=row.id,
        suite=row.suite,
        title=row.title,
        source=_source(row.id),
        sizes={TaskScale.SMALL: {"batch_size": batch_size, "dim": dim}},
        # Every pilot function is defined on the whole real line.
        domains=(Domain(),),
        tolerance=row.tolerance,
        flops_per_element=row.flops,
        rows_independent=True,
        alternatives=tuple(_source(name) for name in row.alternatives),
        memory_gib=row.memory_gib,
    )


def _source(name: str) -> str:
    return (files("gym_kernel.tasks.references") / f"{name}.py").read_text(encoding="utf-8")
