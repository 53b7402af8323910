"""Following which memory a computation holds at once."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = ["LiveBytes"]


class LiveBytes(TorchDispatchMode):
    """Follows the storages that are alive; works on fake tensors, which have none.

    Args:
        known: Tensors that are there before, and do not count.

    Attributes:
        peak: Most bytes that were held at once.
    """

    def __init__(self, known: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self.peak = 0
        self._now = 0
        self._known = {_storage(tensor) for tensor in known}
        self._holders: dict[int, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            self._add(tensor)
        return result

    def _add(self, tensor: torch.Tensor) -> None:
        storage = _storage(tensor)
        if storage in self._known:
            return
        size = tensor.untyped_storage().nbytes()
        if storage not in self._holders:
            self._now += size
            self.peak = max(self.peak, self._now)
        self._holders[storage] = self._holders.get(storage, 0) + 1
        weakref.finalize(tensor, self._drop, storage, size)

    def _drop(self, storage: int, size: int) -> None:
        self._holders[storage] -= 1
        if not self._holders[storage]:
            del self._holders[storage]
            self._now -= size


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
