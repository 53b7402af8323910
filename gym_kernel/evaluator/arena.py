"""Memory that judge and worker share: one allocation, many tensors, one file descriptor.

The judge makes an arena and hands out its descriptor; the worker maps it. On a CPU it is a memfd whose size is
sealed, so that a worker cannot shrink it under the judge. On a GPU see
:mod:`gym_kernel.evaluator.cuda_arena`.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from typing import Protocol

import torch

from gym_kernel.evaluator.worker_messages import TensorSlot

__all__ = ["Arena", "CpuArena", "create_arena", "lay_out", "map_arena", "view"]

_ALIGNMENT_BYTES = 512


class Arena(Protocol):
    """A shared allocation, mapped in this process."""

    size_bytes: int
    bytes: torch.Tensor
    fd: int

    def close(self) -> None:
        """Unmap it and close its descriptor."""


def lay_out(shapes: Sequence[tuple[tuple[int, ...], torch.dtype]]) -> tuple[tuple[TensorSlot, ...], int]:
    """Place tensors one after another at aligned offsets.

    Args:
        shapes: Shape and dtype of each tensor.

    Returns:
        One slot for each tensor, and the size of the arena that holds them, in bytes.
    """
    slots = []
    offset = 0
    for shape, dtype in shapes:
        slots.append(TensorSlot(offset, tuple(shape), str(dtype).removeprefix("torch.")))
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        offset += -(-max(size, 1) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
    return tuple(slots), max(offset, _ALIGNMENT_BYTES)


def view(arena_bytes: torch.Tensor, slot: TensorSlot) -> torch.Tensor:
    """The tensor at ``slot``, a view of the arena."""
    dtype = getattr(torch, slot.dtype)
    size = dtype.itemsize
    for extent in slot.shape:
        size *= extent
    return arena_bytes[slot.offset_bytes : slot.offset_bytes + size].view(dtype).view(slot.shape)


class CpuArena:
    """An arena in host memory.

    Args:
        size_bytes: Size of the allocation.
        fd: Descriptor of an existing arena to map, or ``None`` to make one.
        writable: Whether this mapping may be written.
    """

    def __init__(self, size_bytes: int, fd: int | None = None, *, writable: bool = True) -> None:
        if fd is None:
            fd = os.memfd_create("gym-kernel-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, size_bytes)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.fd = fd
        self.size_bytes = size_bytes
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self._map = mmap.mmap(fd, size_bytes, mmap.MAP_SHARED, protection)
        self.bytes = torch.frombuffer(self._map, dtype=torch.uint8)

    def close(self) -> None:
        """Close the descriptor; the mapping goes with the last tensor that views it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def create_arena(device: torch.device, size_bytes: int) -> Arena:
    """Make a new arena on ``device`` (the judge's side)."""
    if device.type == "cpu":
        return CpuArena(size_bytes)
    from gym_kernel.evaluator.cuda_arena import CudaArena

    return CudaArena.create(device, size_bytes)


def map_arena(device: torch.device, size_bytes: int, fd: int, *, writable: bool) -> Arena:
    """Map an arena that came as a descriptor (the worker's side)."""
    if device.type == "cpu":
        return CpuArena(size_bytes, fd, writable=writable)
    from gym_kernel.evaluator.cuda_arena import CudaArena

    return CudaArena.open(device, size_bytes, fd, writable=writable)
