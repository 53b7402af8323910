"""The kinds of hidden inputs that a candidate is tried on, and how each is written into a buffer.

With KernelBench's own U[0, 1) inputs ``return x`` passes ReLU, zeros pass Softmax and a constant shift passes
LogSoftmax. Each kind here takes such an accident away; together they leave only the function itself.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch.utils._pytree import tree_map

from gym_kernel.tasks.task import Domain

__all__ = ["BUILT_ON_OFFICIAL", "InputKind", "fill", "kinds_for", "official_inputs", "tail_start"]

# 1e2 to 1e3 where the dtype has the range for it. Products and sums of float16 must stay below 65,504.
_LARGE = 300.0
_LARGE_FLOAT16 = 8.0
_OFFSET = 100.0
_OFFSET_FLOAT16 = 8.0
_SMALL = 1e-3
_OUTLIERS = (30.0, 100.0)
_BLOCKS = 32
_FEW = 4
# Powers of two, and what is none: 81/128 lies half way between two codes where twice as much has the code 81.
_TIE_STEPS = (81 / 128, 0.5, 1.0)
_SPARSE_THRESHOLD = 1.645  # |normal| exceeds it in 10 % of the draws
_ZERO_ROWS = 8
_TAIL_STARTS = (-5.0, -3.0)
# exp falls by a factor of 50 to 400 up to here, which leaves errors visible beside the values at the start.
_TAIL_END = -9.0
# Least and greatest size. Above 1e4, which stands for infinity in careless padding; squares leave float16's range.
_HUGE = (1.6e4, 2.4e4)
_HUGE_FLOAT16 = (210.0, 390.0)
# In a domain with edges beyond those: shares of the way to them.
_VAST = (0.3, 0.9)
_OTHER_EDGE_SHARE = 1 / 32


class InputKind(str, Enum):
    """What the values of a hidden input look like."""

    OFFICIAL = "official"
    """As the reference's own ``get_inputs`` makes them."""
    SIGNED_NORMAL = "signed_normal"
    """Standard normal: both signs, so that no activation is the identity."""
    LARGE_SCALE = "large_scale"
    """Normal of standard deviation 300, or all of a bounded domain: clamps, overflow of a bare exp."""
    OUTLIER_BLOCKS = "outlier_blocks"
    """Official values with 30 to 100 times larger ones in 3 % of a row, or in few places: what is left out."""
    OFFSET = "offset"
    """Normal around 100: cancellation, and overflow of an exp whose maximum was not taken off."""
    SMALL_SCALE = "small_scale"
    """Normal of standard deviation 1e-3, and every eighth row zeros: digits lost near zero, an epsilon too many."""
    SPARSE = "sparse"
    """Nine tenths exact zeros, and every eighth row nothing but zeros."""
    TIES = "ties"
    """Five distinct values in each row, so that it has many equal maxima."""
    NEGATIVE_TAIL = "negative_tail"
    """Uniform over [-9, s] with one s in [-5, -3] for all: where all outputs are small, errors cannot hide."""
    HUGE = "huge"
    """Around 2e4 (300 in float16), or near the edges of a vast domain, rows of either sign; else the edges of a
    domain: finite stand-ins for infinity."""


BUILT_ON_OFFICIAL = (InputKind.OFFICIAL, InputKind.OUTLIER_BLOCKS)
"""The kinds that start from what ``get_inputs`` makes."""


@dataclass(frozen=True)
class _Frame:
    """Where values lie in a domain: ``anchor + v`` (on one ``side`` only, unless 0), ``|v| <= reach``."""

    anchor: float
    reach: float
    side: int

    @classmethod
    def of(cls, domain: Domain) -> _Frame:
        bounded_below, bounded_above = math.isfinite(domain.low), math.isfinite(domain.high)
        if not (bounded_below or bounded_above):
            return cls(0.0, math.inf, 0)
        if bounded_below and bounded_above and domain.low < 0.0 < domain.high:
            return cls(0.0, min(-domain.low, domain.high), 0)
        anchor, side = (domain.low, 1) if bounded_below else (domain.high, -1)
        return cls(anchor, domain.high - domain.low, side)

    @property
    def is_vast(self) -> bool:
        """Whether it is the real line but for values that no function but a copy could bear."""
        return self.side == 0 and _HUGE[1] < self.reach < math.inf

    def amplitude(self, wanted: float) -> float:
        """``wanted``, or a third of the reach where that is less: normal draws then seldom meet the edge."""
        return min(wanted, self.reach / 3)


def kinds_for(domains: Sequence[Domain]) -> tuple[InputKind, ...]:
    """The kinds worth running for a task, most telling first.

    Args:
        domains: One domain for each tensor of ``get_inputs``.

    Returns:
        All ten kinds; only ``OFFICIAL`` where every input is fixed.
    """
    return (InputKind.OFFICIAL,) if all(domain.fixed for domain in domains) else tuple(InputKind)


def tail_start(seed: int) -> float:
    """The value below which ``NEGATIVE_TAIL`` draws, uniform in [-5, -3].

    Args:
        seed: Seed of the call.
    """
    return random.Random(seed).uniform(*_TAIL_STARTS)


def fill(
    tensor: torch.Tensor,
    kind: InputKind,
    domain: Domain,
    generator: torch.Generator,
    official: torch.Tensor | None = None,
    tail: float | None = None,
) -> None:
    """Write one kind of values into a tensor, in place and on its device, without a full-size temporary.

    Args:
        tensor: Any shape; float16, bfloat16, float32 or float64. Other dtypes are left official.
        kind: What to write.
        domain: Values are mapped into it. A ``fixed`` domain leaves the tensor official.
        generator: Source of randomness on the tensor's device.
        official: What ``get_inputs`` made, same shape; the kinds of ``BUILT_ON_OFFICIAL`` copy from it.
            Without it they use U[0, 1), KernelBench's usual choice, and what is left official is not touched.
        tail: :func:`tail_start` of the call; the generator's own where it is left out.
    """
    left_official = domain.fixed or not tensor.is_floating_point()
    if official is not None and (left_official or kind in BUILT_ON_OFFICIAL):
        tensor.copy_(official)
    if left_official:
        return
    frame = _Frame.of(domain)
    if official is None and kind in BUILT_ON_OFFICIAL:
        tensor.uniform_(0.0, 1.0, generator=generator)
        _confine(tensor, frame, domain, scale=min(1.0, frame.reach))
    if kind is InputKind.OUTLIER_BLOCKS:
        _outliers(_as_rows(tensor), frame, domain, generator)
    elif kind is InputKind.HUGE:
        _huge(tensor, frame, domain, generator)
    elif kind is InputKind.NEGATIVE_TAIL:
        tail = tail_start(generator.initial_seed()) if tail is None else tail
        fits = min(1.0, frame.reach / -_TAIL_END)
        tensor.uniform_(_TAIL_END * fits, tail * fits, generator=generator)
        _confine(tensor, frame, domain, scale=1.0)
    elif kind is not InputKind.OFFICIAL:
        _draw(tensor, kind, frame, domain, generator)


def official_inputs(
    get_inputs: Callable[[], Sequence[Any]], device: torch.device | str, seed: int
) -> list[Any]:
    """Run a reference's ``get_inputs`` so that its tensors are made on ``device``.

    The global generators are seeded meanwhile and restored afterwards.

    Args:
        get_inputs: The reference module's function; it returns tensors, scalars, or lists of them.
        device: Device of the tensors. Those made elsewhere are moved to it.
        seed: Seed of torch's generators.

    Returns:
        The arguments of ``forward``, in order.
    """
    device = torch.device(device)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        with torch.device(device), torch.no_grad():
            made = list(get_inputs())
    return [tree_map(lambda leaf: _moved(leaf, device), value) for value in made]


def _moved(leaf: Any, device: torch.device) -> Any:
    return leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf


def _draw(
    tensor: torch.Tensor, kind: InputKind, frame: _Frame, domain: Domain, generator: torch.Generator
) -> None:
    half = tensor.dtype == torch.float16
    unit = frame.amplitude(1.0)
    if kind is InputKind.TIES:
        tensor.uniform_(-2.5, 2.5, generator=generator).round_()
        # Rows by turns; a single one by the seed.
        rows = (
            [tensor[turn :: len(_TIE_STEPS)] for turn in range(len(_TIE_STEPS))]
            if tensor.dim() > 1
            else [tensor]
        )
        for turn, part in enumerate(rows):
            step = _TIE_STEPS[(generator.initial_seed() + turn) % len(_TIE_STEPS)]
            _confine(part, frame, domain, scale=step * unit)
        return
    if kind is InputKind.LARGE_SCALE and math.isfinite(domain.high - domain.low) and not frame.is_vast:
        tensor.uniform_(domain.low, domain.high, generator=generator)
        return
    tensor.normal_(generator=generator)
    if kind is InputKind.SPARSE:
        torch.ops.aten.softshrink.out(tensor, _SPARSE_THRESHOLD, out=tensor)
        _zero_some_rows(tensor)
        _confine(tensor, frame, domain, scale=2 * unit)
    elif kind is InputKind.LARGE_SCALE:
        _confine(tensor, frame, domain, scale=frame.amplitude(_LARGE_FLOAT16 if half else _LARGE))
    elif kind is InputKind.SMALL_SCALE:
        # Beside rows of ordinary size nobody would see what stands where a zero belongs.
        _zero_some_rows(tensor)
        _confine(tensor, frame, domain, scale=_SMALL * unit)
    elif kind is InputKind.OFFSET:
        offset = min(_OFFSET_FLOAT16 if half else _OFFSET, 0.5 * frame.reach)
        # A tenth of a narrow room: the values stay closer to each other than to the anchor.
        _confine(tensor, frame, domain, scale=min(1.0, 0.2 * offset), offset=offset)
    else:
        _confine(tensor, frame, domain, scale=unit)


def _zero_some_rows(tensor: torch.Tensor) -> None:
    if tensor.dim():
        tensor[_ZERO_ROWS - 1 :: _ZERO_ROWS].zero_()


def _confine(
    tensor: torch.Tensor, frame: _Frame, domain: Domain, *, scale: float, offset: float = 0.0
) -> None:
    """Map standard values into the domain: ``anchor + side(offset + scale * v)``, clamped."""
    tensor.mul_(scale)
    if offset:
        tensor.add_(offset)
    if frame.side:
        tensor.abs_().mul_(frame.side)
    if frame.anchor:
        tensor.add_(frame.anchor)
    if math.isfinite(domain.low) or math.isfinite(domain.high):
        tensor.clamp_(domain.low, domain.high)


def _huge(tensor: torch.Tensor, frame: _Frame, domain: Domain, generator: torch.Generator) -> None:
    """Rows (along dimension 0) of one sign, in turns; in a bounded domain mostly the one edge or the other."""
    # A single row must not have the same sign in every call.
    other_sign = slice(generator.initial_seed() % 2, None, 2)
    if frame.is_vast or not math.isfinite(domain.high - domain.low):
        tensor.uniform_(*_huge_sizes(tensor.dtype, frame), generator=generator)
        if tensor.dim() and not frame.side:
            tensor[other_sign].neg_()
        if tensor.dim() > 1 and tensor.dtype == torch.float16:
            # Differences within a row leave the range of float16's squares as well.
            tensor[2::4, ..., ::_BLOCKS].neg_()
        _confine(tensor, frame, domain, scale=1.0)
        return
    tensor.uniform_(generator=generator).lt_(_OTHER_EDGE_SHARE)
    if tensor.dim():
        # These hold the one edge alone: a decay of 1 forgets nothing, however long the row is.
        tensor[0::4].zero_()
        tensor[1::4].zero_()
    tensor.mul_(domain.low - domain.high).add_(domain.high)
    if tensor.dim() and not frame.side:
        tensor[other_sign].neg_().add_(domain.low + domain.high)
    tensor.clamp_(domain.low, domain.high)


def _huge_sizes(dtype: torch.dtype, frame: _Frame) -> tuple[float, float]:
    """Least and greatest size where values are not the edges of a domain."""
    if frame.is_vast:
        return _VAST[0] * frame.reach, _VAST[1] * frame.reach
    return _HUGE_FLOAT16 if dtype == torch.float16 else _HUGE


def _outliers(rows: torch.Tensor, frame: _Frame, domain: Domain, generator: torch.Generator) -> None:
    """Values of 30 to 100 in size and either sign.

    Of three rows two have them in one of 32 blocks, the last one in row 0, the first in row 1, then each of the others,
    and in their outermost columns. The third has few: the first or the last column alone, of either sign, then any
    four.
    """
    if not rows.numel():
        return
    low, high = (edge * min(1.0, frame.reach / _OUTLIERS[1]) for edge in _OUTLIERS)

    def put(part: torch.Tensor) -> None:
        part.uniform_(low - high, high - low, generator=generator)
        part.add_(part.sign(), alpha=low)
        _confine(part, frame, domain, scale=1.0)

    count, columns = rows.shape[0], rows.shape[-1]
    length = math.ceil(columns / _BLOCKS)
    starts = (columns - length, 0, *(block * columns // _BLOCKS for block in range(1, _BLOCKS - 1)))
    for position, start in enumerate(starts):
        first = position // 2 * 3 + position % 2
        if first < count:
            put(rows[first :: _BLOCKS // 2 * 3].narrow(-1, start, length))
    # A candidate that drops a single column must not be saved by the other outliers; it may be the largest of all.
    for first in range(min(count, 2)):
        for column in (0, -1) if count > 1 else (-1,):
            edge = rows[first::3].select(-1, column).uniform_(-1.2 * high, 1.2 * high, generator=generator)
            _confine(edge, frame, domain, scale=1.0)
    # Nor by their sum, which hides one of many.
    sparse = rows[2::3]
    if sparse.shape[0]:
        chosen = torch.randint(columns, (*sparse.shape[:-1], _FEW), device=rows.device, generator=generator)
        values = torch.empty(chosen.shape, dtype=rows.dtype, device=rows.device)
        put(values)
        # By turns where there is no room for all of them.
        edges = ((0, 1), (-1, 1), (0, -1), (-1, -1))
        turn = generator.initial_seed() % len(edges) if sparse.shape[0] < len(edges) else 0
        for row, (column, sign) in enumerate((edges + edges)[turn : turn + len(edges)]):
            chosen[row : row + 1] = column % columns
            if not frame.side and not frame.anchor:
                values[row : row + 1].abs_().mul_(sign)
        sparse.scatter_(-1, chosen, values)


def _as_rows(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as rows; as a single one where its rows are short."""
    if tensor.dim() < 2:
        return tensor.unsqueeze(0) if tensor.dim() else tensor.view(1, 1)
    if not tensor.is_contiguous():
        return tensor
    return tensor.view(1, -1) if tensor.shape[-1] < _BLOCKS else tensor.view(-1, tensor.shape[-1])
