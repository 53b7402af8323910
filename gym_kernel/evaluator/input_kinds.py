"""The kinds of hidden inputs that a candidate is tried on, and how each is written into a buffer.

With KernelBench's own U[0, 1) inputs ``return x`` passes ReLU, zeros pass Softmax and a constant shift passes
LogSoftmax. Each kind here takes such an accident away; together they leave only the function itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch.utils._pytree import tree_map

from gym_kernel.tasks.task import Domain

__all__ = ["InputKind", "fill", "kinds_for", "official_inputs"]

# 1e2 to 1e3 where the dtype has the range for it. Products and sums of float16 must stay below 65,504.
_LARGE = 300.0
_LARGE_FLOAT16 = 8.0
_OFFSET = 100.0
_OFFSET_FLOAT16 = 8.0
_SMALL = 1e-3
_OUTLIERS = (30.0, 100.0)
_SUFFIX_FRACTION = 1 / 32
_SPARSE_THRESHOLD = 1.645  # |normal| exceeds it in 10 % of the draws


class InputKind(str, Enum):
    """What the values of a hidden input look like."""

    OFFICIAL = "official"
    """As the reference's own ``get_inputs`` makes them."""
    SIGNED_NORMAL = "signed_normal"
    """Standard normal: both signs, so that no activation is the identity."""
    LARGE_SCALE = "large_scale"
    """Normal of standard deviation 300, or all of a bounded domain: clamps, overflow of a bare exp."""
    OUTLIER_SUFFIX = "outlier_suffix"
    """Official values with 30 to 100 times larger ones in the last 3 % of a row: truncated tails."""
    OFFSET = "offset"
    """Normal around 100: cancellation, and overflow of an exp whose maximum was not taken off."""
    SMALL_SCALE = "small_scale"
    """Normal of standard deviation 1e-3: digits lost near zero."""
    SPARSE = "sparse"
    """Nine tenths exact zeros."""
    TIES = "ties"
    """Five distinct values, so that every row has many equal maxima."""


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

    def amplitude(self, wanted: float) -> float:
        """``wanted``, or a third of the reach where that is less: normal draws then seldom meet the edge."""
        return min(wanted, self.reach / 3)


def kinds_for(domains: Sequence[Domain]) -> tuple[InputKind, ...]:
    """The kinds worth running for a task, most telling first.

    Args:
        domains: One domain for each tensor of ``get_inputs``.

    Returns:
        All eight kinds; only ``OFFICIAL`` where every input is fixed.
    """
    return (InputKind.OFFICIAL,) if all(domain.fixed for domain in domains) else tuple(InputKind)


def fill(
    tensor: torch.Tensor,
    kind: InputKind,
    domain: Domain,
    generator: torch.Generator,
    official: torch.Tensor | None = None,
) -> None:
    """Write one kind of values into a tensor, in place and on its device, without a full-size temporary.

    Args:
        tensor: Any shape; float16, bfloat16, float32 or float64. Other dtypes are left official.
        kind: What to write.
        domain: Values are mapped into it. A ``fixed`` domain leaves the tensor official.
        generator: Source of randomness on the tensor's device.
        official: What ``get_inputs`` made, same shape; ``OFFICIAL`` and ``OUTLIER_SUFFIX`` copy from it.
            Without it they use U[0, 1), KernelBench's usual choice, and what is left official is not touched.
    """
    left_official = domain.fixed or not tensor.is_floating_point()
    if official is not None and (left_official or kind in (InputKind.OFFICIAL, InputKind.OUTLIER_SUFFIX)):
        tensor.copy_(official)
    if left_official:
        return
    frame = _Frame.of(domain)
    if official is None and kind in (InputKind.OFFICIAL, InputKind.OUTLIER_SUFFIX):
        tensor.uniform_(0.0, 1.0, generator=generator)
        _confine(tensor, frame, domain, scale=min(1.0, frame.reach))
    if kind is InputKind.OUTLIER_SUFFIX:
        _outliers(_suffix(tensor), frame, domain, generator)
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
        _confine(tensor, frame, domain, scale=0.75 * unit)
        return
    if kind is InputKind.LARGE_SCALE and math.isfinite(domain.high - domain.low):
        tensor.uniform_(domain.low, domain.high, generator=generator)
        return
    tensor.normal_(generator=generator)
    if kind is InputKind.SPARSE:
        torch.ops.aten.softshrink.out(tensor, _SPARSE_THRESHOLD, out=tensor)
        _confine(tensor, frame, domain, scale=2 * unit)
    elif kind is InputKind.LARGE_SCALE:
        _confine(tensor, frame, domain, scale=frame.amplitude(_LARGE_FLOAT16 if half else _LARGE))
    elif kind is InputKind.SMALL_SCALE:
        _confine(tensor, frame, domain, scale=_SMALL * unit)
    elif kind is InputKind.OFFSET:
        offset = min(_OFFSET_FLOAT16 if half else _OFFSET, 0.5 * frame.reach)
        # A tenth of a narrow room: the values stay closer to each other than to the anchor.
        _confine(tensor, frame, domain, scale=min(1.0, 0.2 * offset), offset=offset)
    else:
        _confine(tensor, frame, domain, scale=unit)


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


def _outliers(tail: torch.Tensor, frame: _Frame, domain: Domain, generator: torch.Generator) -> None:
    """Values of 30 to 100 in size and either sign; the very last of a row may be the largest of all."""
    low, high = (edge * min(1.0, frame.reach / _OUTLIERS[1]) for edge in _OUTLIERS)
    tail.uniform_(low - high, high - low, generator=generator)
    tail.add_(tail.sign(), alpha=low)
    if tail.dim() and tail.numel():
        # A candidate that drops only the last column must not be saved by the other outliers.
        tail.select(-1, -1).uniform_(-1.2 * high, 1.2 * high, generator=generator)
    _confine(tail, frame, domain, scale=1.0)


def _suffix(tensor: torch.Tensor) -> torch.Tensor:
    """The last few per cent: of every row, or of the whole tensor where its rows are short."""
    if tensor.dim() > 1 and tensor.shape[-1] < 1 / _SUFFIX_FRACTION and tensor.is_contiguous():
        tensor = tensor.view(-1)
    if tensor.dim() == 0 or tensor.numel() == 0:
        return tensor
    length = math.ceil(tensor.shape[-1] * _SUFFIX_FRACTION)
    return tensor.narrow(-1, tensor.shape[-1] - length, length)
