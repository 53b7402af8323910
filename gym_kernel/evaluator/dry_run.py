"""Running a forward pass without having torch do any large work on the device.

While a submission is compiled ahead, another one may be timed on the same device. Its time must not depend on how many
buffers its neighbour fills.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from gym_kernel.evaluator.own_work import is_torch_operation

__all__ = ["DryRun"]

# Up to here values are computed: tables and counters, on which sizes and loops may depend. It takes microseconds.
_SMALL_ELEMENTS = 1 << 16
# These write to a tensor's description or to nothing at all.
_METADATA = frozenset("_resize_output_ record_stream requires_grad_ set_data".split())


class DryRun(TorchDispatchMode):
    """Gives the results of torch's large operators on a device their shapes, and no values.

    Views stay views of the same memory, and small tensors are computed. So is what cannot be told without values, such
    as the number of elements that are not zero, from whatever the memory holds.

    Args:
        device: Operators with tensors elsewhere alone are let through.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The default imports the whole of torch's compiler at the first operator, for a second.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Answer for an operator without running it, where it is large and that can be done."""
        kwargs = kwargs or {}
        if not self._is_here((args, kwargs)) or not _computes(func):
            return func(*args, **kwargs)
        if func._schema.is_mutable:
            written = _written(func, args, kwargs)
            return _returned(func, written) if _is_large(written) else func(*args, **kwargs)
        try:
            shapes = func(*tree_map(_to_meta, args), **tree_map(_to_meta, kwargs))
        except (NotImplementedError, RuntimeError):
            # It depends on values, or knows no shapes without them.
            return func(*args, **kwargs)
        if not _is_large((args, kwargs, shapes)):
            return func(*args, **kwargs)
        return tree_map(self._from_meta, shapes)

    def _is_here(self, values: Any) -> bool:
        for leaf in tree_flatten(values)[0]:
            device = leaf.device if isinstance(leaf, torch.Tensor) else leaf
            if isinstance(device, torch.device) and device.type == self._device.type:
                return True
        return False

    def _from_meta(self, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return torch.empty_strided(leaf.size(), leaf.stride(), dtype=leaf.dtype, device=self._device)


def _computes(func: Any) -> bool:
    """Whether an operator is torch's, and neither a view nor a change of a tensor's description."""
    if not isinstance(func, torch._ops.OpOverload) or not is_torch_operation(func.name()):
        return False
    if func.name().partition("::")[2].partition(".")[0] in _METADATA:
        return False
    return not func.is_view and torch.Tag.inplace_view not in func.tags


def _to_meta(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return torch.empty_strided(leaf.size(), leaf.stride(), dtype=leaf.dtype, device="meta")
    return torch.device("meta") if isinstance(leaf, torch.device) else leaf


def _is_large(values: Any) -> bool:
    leaves = tree_flatten(values)[0]
    return max((t.numel() for t in leaves if isinstance(t, torch.Tensor)), default=0) > _SMALL_ELEMENTS


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
    """The arguments that an operator's schema says it writes to, in order."""
    arguments = enumerate(func._schema.arguments)
    return [
        args[position] if position < len(args) else kwargs.get(argument.name)
        for position, argument in arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def _returned(func: Any, written: Sequence[Any]) -> Any:
    """What an operator returns that returns what it writes to, or nothing."""
    if not func._schema.returns:
        return None
    return written[0] if len(func._schema.returns) == 1 else tuple(written)
