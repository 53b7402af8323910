"""Telling bookkeeping with whole numbers from values in disguise.

Operators on whole numbers are bookkeeping, so long as the numbers do not stand for values: the bits of a float, or
what a kernel has written into a buffer. Where numbers come from is followed through a call, storage by storage.
What a kernel writes cannot be seen; so buffers that a kernel could have written into may be worked on to a limit.
So may the arguments: an index is bookkeeping, weights in four or eight bits are values, and both are whole numbers.
They are told apart by their size beside the floating-point ones, and by the bytes of an element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

import torch
from torch.multiprocessing.reductions import StorageWeakRef

__all__ = ["WholeNumbers"]

# Counters and the like that a kernel has written have fewer elements than this, and few steps are taken with them.
_SMALL_ELEMENTS = 1024
_SMALL_IN_ALL = 2 * _SMALL_ELEMENTS
# Tables that torch filled or the model keeps may be larger, but not so large that they could hold the values: all
# steps with them together, as a share of the elements of the largest floating-point argument.
_TABLES_SHARE = 0.25
# An index has an element for each row and is worked on a dozen times; a flag for each value, once or twice.
_INDEX_SHARE = 4.0
# Nobody keeps an index in so few bytes, but codes that stand for weights.
_CODE_BYTES = 2

_FILLING = ("zeros", "ones", "full", "new_zeros", "new_ones", "new_full", "zero_", "fill_", "arange")
# What they write to is not read by them.
_WRITING = frozenset("copy_ fill_ zero_ index_put_ scatter_ index_copy_ index_fill_ put_ random_".split())


class _Origin(IntEnum):
    """Where whole numbers come from; the worse, the lower. Codes that were given are no better than tables."""

    UNKNOWN = 0
    FILLED = 1
    ARGUMENT = 2


class WholeNumbers:
    """Where the whole-number tensors of one call come from.

    Args:
        arguments: Tensors that ``forward`` was given.
        kept: Parameters and buffers of the model.
    """

    def __init__(self, arguments: Iterable[torch.Tensor] = (), kept: Iterable[torch.Tensor] = ()) -> None:
        # Arguments share one storage, and are told apart by their addresses.
        self._arguments: list[tuple[int, int, _Origin]] = []
        # Weak references keep a storage's identity from being given to another one.
        self._origins: dict[int, tuple[StorageWeakRef, _Origin]] = {}
        given = kept_floats = 0
        shared = set()
        for tensor in arguments:
            shared.add(_storage(tensor))
            if _is_whole(tensor):
                self._arguments.append((*_span(tensor), _origin_of_argument(tensor)))
            else:
                given = max(given, tensor.numel())
        for tensor in kept:
            if not _is_whole(tensor):
                kept_floats = max(kept_floats, tensor.numel())
            elif _storage(tensor) not in shared:
                self._set(tensor, _Origin.FILLED)
        self._left = {
            _Origin.UNKNOWN: _SMALL_IN_ALL,
            _Origin.FILLED: max(_SMALL_IN_ALL, int(_TABLES_SHARE * given)),
            # The rows that an index picks may be a parameter's.
            _Origin.ARGUMENT: max(_SMALL_IN_ALL, int(_INDEX_SHARE * max(given, kept_floats))),
        }

    def is_bookkeeping(
        self,
        name: str,
        inputs: Sequence[torch.Tensor],
        written: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
    ) -> bool:
        """Whether an operator that is not innocent in itself works on nothing but whole numbers of known origin.

        Args:
            name: The operator's, without namespace and overload.
            inputs: Tensors that it was given.
            written: Those of them that it writes to.
            results: Tensors that it gave.
        """
        if not results or not all(map(_is_whole, (*inputs, *results))):
            return False
        return all(self._afford(tensor) for tensor in _read(name, inputs, written))

    def follow(
        self,
        name: str,
        inputs: Sequence[torch.Tensor],
        written: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
    ) -> None:
        """Note where an operator's results come from; the arguments are those of :meth:`is_bookkeeping`."""
        read = _read(name, inputs, written)
        if name.startswith(("empty", "new_empty")):
            origin = _Origin.UNKNOWN
        elif name.startswith(_FILLING) or not inputs:
            origin = _Origin.FILLED
        else:
            origin = min((self._origin(tensor) for tensor in read), default=_Origin.FILLED)
        for tensor in written:
            self._set(tensor, self._rewritten(name, tensor, origin, read))
        known = {_storage(tensor) for tensor in inputs}
        for tensor in results:
            if _is_whole(tensor) and _storage(tensor) not in known:
                self._set(tensor, origin)

    def _rewritten(
        self, name: str, tensor: torch.Tensor, origin: _Origin, read: Sequence[torch.Tensor]
    ) -> _Origin:
        before = self._origin(tensor)
        if not _is_whole(tensor):
            return _Origin.UNKNOWN
        covers = tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes()
        if covers and name in ("copy_", "zero_", "fill_", "random_"):
            return origin
        if covers and name in _WRITING and max((t.numel() for t in read), default=0) >= tensor.numel():
            # Every place could have been written, if not by these indices.
            return min(origin, _Origin.FILLED)
        return min(origin, before)

    def _afford(self, tensor: torch.Tensor) -> bool:
        origin, elements = self._origin(tensor), tensor.numel()
        if origin is _Origin.UNKNOWN and elements >= _SMALL_ELEMENTS:
            return False
        self._left[origin] -= elements
        return self._left[origin] >= 0

    def _origin(self, tensor: torch.Tensor) -> _Origin:
        if not _is_whole(tensor):
            return _Origin.UNKNOWN
        found = self._origins.get(_storage(tensor))
        if found is not None:
            return found[1]
        first, last = _span(tensor)
        around = (origin for start, end, origin in self._arguments if start <= first and last <= end)
        return next(around, _Origin.UNKNOWN)

    def _set(self, tensor: torch.Tensor, origin: _Origin) -> None:
        key = _storage(tensor)
        if origin is _Origin.UNKNOWN or not key:
            self._origins.pop(key, None)
        else:
            self._origins[key] = (StorageWeakRef(tensor.untyped_storage()), origin)


def _read(name: str, inputs: Sequence[torch.Tensor], written: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    if name not in _WRITING:
        return list(inputs)
    targets = {id(tensor) for tensor in written}
    return [tensor for tensor in inputs if id(tensor) not in targets]


def _origin_of_argument(tensor: torch.Tensor) -> _Origin:
    may_be_codes = tensor.dtype != torch.bool and tensor.element_size() <= _CODE_BYTES
    return _Origin.FILLED if may_be_codes else _Origin.ARGUMENT


def _is_whole(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex())


def _storage(tensor: torch.Tensor) -> int:
    """Identity of a tensor's storage; 0 for one that has none, as a functorch wrapper or a sparse tensor."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return 0


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """First and last address of a tensor's bytes; an empty one outside of all memory for one without storage."""
    try:
        start = tensor.data_ptr()
        steps = zip(tensor.shape, tensor.stride(), strict=True)
    except (RuntimeError, NotImplementedError):
        return -1, -1
    extent = 1 + sum((n - 1) * s for n, s in steps) if tensor.numel() else 0
    return start, start + extent * tensor.element_size()
