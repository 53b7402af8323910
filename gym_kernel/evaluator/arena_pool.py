"""Arenas of a judge, used again by later evaluations once the worker that mapped them is dead."""

from __future__ import annotations

import threading

import torch

from gym_kernel.errors import DeviceUnavailable
from gym_kernel.evaluator.arena import Arena, create_arena

__all__ = ["ArenaPool"]

_WASTE = 1.25
# Each holds a descriptor, however small it is.
_MOST_IDLE = 64


class ArenaPool:
    """Shared allocations on one device.

    Args:
        device: Where they live.
        keep_bytes: Most bytes kept idle for later use.
    """

    def __init__(self, device: torch.device, keep_bytes: int) -> None:
        self._device = device
        self._keep_bytes = keep_bytes
        self._idle: list[Arena] = []
        self._mutex = threading.Lock()

    def acquire(self, size_bytes: int) -> Arena:
        """An arena of at least ``size_bytes``; its contents are whatever was there.

        Raises:
            DeviceUnavailable: The device has no room for it even with every idle arena given back.
        """
        with self._mutex:
            fitting = [a for a in self._idle if size_bytes <= a.size_bytes <= size_bytes * _WASTE]
            if fitting:
                arena = min(fitting, key=lambda a: a.size_bytes)
                self._idle.remove(arena)
                return arena
            try:
                return create_arena(self._device, size_bytes)
            except DeviceUnavailable:
                self._give_back_idle()
                return create_arena(self._device, size_bytes)

    def release(self, arena: Arena) -> None:
        """Give an arena back. Nobody else may have it mapped any more."""
        with self._mutex:
            self._idle.append(arena)
            self._drop_idle(self._keep_bytes)

    def give_back_idle(self) -> None:
        """Leave to others what is kept for later use."""
        with self._mutex:
            self._give_back_idle()

    def _give_back_idle(self) -> None:
        self._drop_idle(0)
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _drop_idle(self, keep_bytes: int) -> None:
        while self._idle and (
            len(self._idle) > _MOST_IDLE or sum(a.size_bytes for a in self._idle) > keep_bytes
        ):
            self._idle.pop(0).close()
