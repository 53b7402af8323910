"""What kernels in Triton's interpreter stored during a call, and how much of an output is still that.

An element counts as a kernel's own where memory still holds, bit for bit, what a kernel stored there, or what was
moved there from such memory. So a store that is masked off, one to some other buffer, and one that somebody else
has written over count for nothing. Elements that are zero are left out on both sides: memory that is filled with
zeros first needs no store where nothing else belongs, and a store of zeros proves nothing.

What another library computes into a buffer, and a kernel of the submission's own then copies to the output, counts
as its own: a kernel that only copies looks like any other. This is a hurdle, and no proof.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["StoreJournal", "count_stores"]

# Beyond so many noted elements, what a later store has overwritten is dropped.
_MOST_ELEMENTS = 1 << 22


@dataclass(frozen=True)
class _Stores:
    """Values of one width by the address of their first byte, in the order in which they came."""

    addresses: NDArray[np.int64]
    values: NDArray[Any]

    @property
    def width_bytes(self) -> int:
        return int(self.values.dtype.itemsize)


class StoreJournal:
    """The stores of one call at a time.

    Attributes:
        decided: Elements that kernels decided about, masked ones too.
    """

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Forget the last call."""
        self.decided = 0
        self._entries: list[_Stores] = []
        self._elements = 0
        self._limit = _MOST_ELEMENTS

    @property
    def position(self) -> int:
        """Where the journal stands, to ask later for what has come since."""
        return len(self._entries)

    def note(self, addresses: NDArray[Any], values: NDArray[Any]) -> None:
        """Write down what was stored.

        Args:
            addresses: Byte addresses, any shape.
            values: The values there, of the same shape.
        """
        if addresses.size:
            kept = np.array(values).reshape(-1).view(f"u{values.dtype.itemsize}")
            self._entries.append(_Stores(np.array(addresses, dtype=np.int64).reshape(-1), kept))
            self._elements += addresses.size
        if self._elements > self._limit:
            self._compact()

    def own(self, tensor: torch.Tensor) -> NDArray[np.bool_]:
        """Which elements of a tensor in host memory hold what kernels stored; flat, in the tensor's order."""
        memory = _Memory.of(tensor)
        if not self._entries or memory.raw.size == 0:
            return np.zeros(tensor.numel(), dtype=bool)
        near = [entry for entry in self._entries if memory.overlaps(entry.addresses)]
        unit = min([memory.item_bytes, *(entry.width_bytes for entry in near)])
        now = memory.raw.view(f"u{unit}")
        kept = np.zeros(now.size, dtype=now.dtype)
        noted = np.zeros(now.size, dtype=bool)
        for entry in near:
            values = entry.values.view(f"u{unit}").reshape(entry.addresses.size, -1)
            for part in range(values.shape[1]):
                offsets = entry.addresses + (part * unit - memory.start)
                inside = (offsets >= 0) & (offsets < memory.raw.size)
                places = offsets[inside] // unit
                kept[places] = values[inside, part]
                noted[places] = True
        held = (noted & (kept == now)).reshape(-1, memory.item_bytes // unit).all(axis=1)
        return memory.elements(held)

    def moved(self, sources: Sequence[torch.Tensor], target: torch.Tensor) -> None:
        """Note that an operator moved tensors into another one, which then holds as much of kernels' work.

        Args:
            sources: What was moved; all of it lands in ``target`` if the sizes agree.
            target: Where it is now.
        """
        if not self._entries or not target.numel():
            return
        owned = [self.own(source) for source in sources]
        share = sum(int(flags.sum()) for flags in owned) / max(1, sum(flags.size for flags in owned))
        if not share:
            return
        if len(owned) == 1 and owned[0].size == target.numel():
            flags = owned[0]
        else:
            # Which elements they are matters to nobody, only how many.
            flags = np.arange(target.numel()) < share * target.numel()
        self._note_held(target, flags)

    def emerged(self, target: torch.Tensor, since: int) -> None:
        """Note that an operator of the submission's own gave a tensor, whose movements inside nobody saw.

        Its elements count where as many kernels' stores of the same bits came since.

        Args:
            target: The result.
            since: The journal's position before the operator.
        """
        memory = _Memory.of(target)
        unit = np.dtype(f"u{memory.item_bytes}")
        stored = [e.values for e in self._entries[since:] if e.width_bytes == memory.item_bytes]
        if not stored or not target.numel():
            return
        values = memory.elements(memory.raw.view(unit))
        there, inverse, wanted = np.unique(values, return_inverse=True, return_counts=True)
        had, count = np.unique(np.concatenate(stored), return_counts=True)
        at = np.searchsorted(had, there).clip(max=had.size - 1)
        enough = (had[at] == there) & (count[at] >= wanted)
        self._note_held(target, enough[inverse.reshape(-1)])

    def count_own(self, outputs: Sequence[torch.Tensor]) -> tuple[int, int]:
        """How many elements of a call's outputs are kernels' own and not zero, and how many are zero."""
        own = zero = 0
        for tensor in outputs:
            memory = _Memory.of(tensor)
            blank = memory.elements(memory.raw.view(f"u{memory.item_bytes}")) == 0
            zero += int(blank.sum())
            own += int((self.own(tensor) & ~blank).sum())
        return own, zero

    def _note_held(self, tensor: torch.Tensor, flags: NDArray[np.bool_]) -> None:
        memory = _Memory.of(tensor)
        places = memory.elements(np.arange(memory.raw.size // memory.item_bytes))[flags]
        values = memory.raw.view(f"u{memory.item_bytes}")[places]
        self.note(memory.start + places * memory.item_bytes, values)

    def _compact(self) -> None:
        compacted: list[_Stores] = []
        for entry in self._entries:
            if compacted and compacted[-1].width_bytes == entry.width_bytes:
                last = compacted.pop()
                entry = _Stores(
                    np.concatenate([last.addresses, entry.addresses]),
                    np.concatenate([last.values, entry.values]),
                )
            compacted.append(entry)
        self._entries = [_last_ones(entry) for entry in compacted]
        self._elements = sum(entry.addresses.size for entry in self._entries)
        self._limit = max(_MOST_ELEMENTS, 2 * self._elements)


@dataclass(frozen=True)
class _Memory:
    """The bytes between a tensor's first element and its last."""

    raw: NDArray[np.uint8]
    start: int
    item_bytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Memory:
        item_bytes, start = tensor.element_size(), tensor.data_ptr()
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        if item_bytes > 8:
            # No numpy integer is as wide as complex128: two of them, side by side.
            shape, strides = (*shape, 2), (*(2 * s for s in strides), 1)
            item_bytes //= 2
        length = 0
        if tensor.numel():
            length = item_bytes * (1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))
        memory = (ctypes.c_uint8 * length).from_address(start)
        raw = np.ctypeslib.as_array(memory) if length else np.zeros(0, dtype=np.uint8)
        return cls(raw, start, item_bytes, shape, strides)

    def overlaps(self, addresses: NDArray[np.int64]) -> bool:
        return bool(addresses.max() + 8 > self.start and addresses.min() < self.start + self.raw.size)

    def elements(self, items: NDArray[Any]) -> NDArray[Any]:
        """Those of the items between first and last that are the tensor's, in its order."""
        if not items.size:
            return items
        steps = [s * items.itemsize for s in self.strides]
        return np.lib.stride_tricks.as_strided(items, self.shape, steps).reshape(-1)


def _last_ones(entry: _Stores) -> _Stores:
    """One value for each address: the last that was stored."""
    addresses, first = np.unique(entry.addresses[::-1], return_index=True)
    return _Stores(addresses, entry.values[::-1][first])


def count_stores(journal: StoreJournal) -> None:
    """Have Triton's interpreter write what kernels store into a journal.

    The journal hangs on nothing that the interpreter's module holds by name.
    """
    from triton.runtime import interpreter

    memory = interpreter._interpreter

    def note(pointers: Any, values: Any, mask: Any) -> None:
        journal.decided += int(pointers.size)
        live = np.asarray(mask, dtype=bool)
        journal.note(pointers[live], np.broadcast_to(values, pointers.shape)[live])

    class _NotedMemory:
        def __getattr__(self, name: str) -> Any:
            return getattr(memory, name)

        def store(self, pointers: Any, values: Any, mask: Any) -> Any:
            result = memory.store(pointers, values, mask)
            note(pointers, values, mask)
            return result

        def atomic_rmw(self, operation: Any, pointers: Any, values: Any, mask: Any, order: Any) -> Any:
            result = memory.atomic_rmw(operation, pointers, values, mask, order)
            note(pointers, memory.load(pointers, mask, np.zeros_like(values), values.dtype), mask)
            return result

        def atomic_cas(self, pointers: Any, expected: Any, values: Any, order: Any) -> Any:
            result = memory.atomic_cas(pointers, expected, values, order)
            everywhere = np.ones_like(pointers, dtype=bool)
            note(pointers, memory.load(pointers, everywhere, np.zeros_like(values), values.dtype), everywhere)
            return result

    interpreter._interpreter = _NotedMemory()
