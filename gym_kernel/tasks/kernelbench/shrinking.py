"""Small sizes for a CPU: a problem's integers scaled down, in one of a few ways.

Which way a problem bears depends on what it divides by what, so nothing can be promised from the text alone. The ways
below go from the smallest sizes to the most careful; ``benchmarks/kernelbench_survey.py`` runs the reference in each
until one works, and keeps its number beside the problem's hash. A problem that nobody has surveyed gets the last one:
only its batch is made smaller, which every module with a batch has to bear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gym_kernel.tasks.kernelbench.static import ModuleFacts

__all__ = ["CAREFUL", "OFFICIAL", "WAYS", "small_sizes"]

_BATCH = re.compile(r"b|batch|batch_?size|bs", re.IGNORECASE)
_SPATIAL = re.compile(
    r"(?:image_)?(?:depth|height|width|length|size)(?:_in)?|[dhw]|dim\d*|[mnkl]|\w*seq\w*len\w*",
    re.IGNORECASE,
)
# Numbers that say how, and not how much: a kernel's width, a stride, a number of groups.
_STRUCTURAL = re.compile(
    r"kernel|stride|pad|dilation|group|head|layer|pool|block|stage|window|patch|class|scale|value|factor|divis|max_dim"
    r"|reduce|expand|rate|state",
    re.IGNORECASE,
)
_LEAST = 17
_ROWS = 11


@dataclass(frozen=True)
class _Way:
    """How far sizes are scaled down.

    Attributes:
        batch: Size of the batch; 0 leaves it. Where inputs are short rows there are eleven times as many of them.
        dims: For inputs of 2, 3, 4 and 5 dimensions or more, what their other sizes are halved to at most.
        widths: What sizes that only ``get_init_inputs`` names are halved to at most; 0 leaves them.
        odd: Names whose halved sizes are made odd, for a tail that a kernel has to mask.
    """

    batch: int
    dims: tuple[int, int, int, int] | None = None
    widths: int = 0
    odd: re.Pattern[str] | None = None


_ANY = re.compile(".*")
_NARROW, _WIDE, _WIDER = (256, 64, 24, 12), (512, 128, 64, 16), (1024, 256, 128, 32)

#: Ways from the smallest sizes to the most careful.
WAYS = (
    _Way(3, _NARROW, 64, odd=_ANY),
    _Way(3, _NARROW, 64, odd=_SPATIAL),
    _Way(3, _NARROW, 64),
    _Way(2, _NARROW, 0),
    _Way(2, _WIDE, 128),
    _Way(4, _WIDER, 1024),
    _Way(4, _WIDER, 0),
    _Way(4),
    _Way(0, (4096, 256, 128, 64), 0),
    _Way(2),
)

#: The most careful way.
CAREFUL = len(WAYS) - 1

#: No way at all: the sizes that the module has.
OFFICIAL = -1


def small_sizes(facts: ModuleFacts, way: int) -> dict[str, int]:
    """Sizes of a module, scaled down.

    Args:
        facts: The module.
        way: Index into :data:`WAYS`, or :data:`OFFICIAL`.

    Returns:
        New values for module-level integers; empty where this way changes nothing.
    """
    if way == OFFICIAL:
        return {}
    chosen = WAYS[way]
    inputs = facts.inputs or ()
    ranks = {
        name: max(len(each.shape or ()) for each in inputs if name in each.names)
        for each in inputs
        for name in each.names
    }
    free = {name for name in facts.integers if name not in facts.frozen and name not in facts.derived}
    short_rows = (
        any(_BATCH.fullmatch(name) is None for name in free & ranks.keys()) and max(ranks.values()) <= 2
    )
    sizes: dict[str, int] = {}
    for name, value in facts.integers.items():
        if name not in free:
            continue
        if _BATCH.fullmatch(name):
            wanted = chosen.batch * (_ROWS if short_rows else 1) or value
        else:
            wanted = _scaled(name, value, ranks.get(name), chosen)
        if wanted < value:
            sizes[name] = wanted
    return facts.with_derived(sizes)


def _scaled(name: str, value: int, rank: int | None, way: _Way) -> int:
    """A size halved until it fits; ``rank`` is the dimensions of the input that it belongs to, if any."""
    if value < _LEAST or _STRUCTURAL.search(name):
        return value
    limit = way.widths or value
    if rank is not None:
        limit = way.dims[min(max(rank, 2), 5) - 2] if way.dims else value
    halved = value
    while halved > limit:
        halved //= 2
    if halved < value and way.odd is not None and way.odd.fullmatch(name) is not None:
        return halved - 1 + halved % 2
    return halved
