"""Which torch operators a forward pass goes through.

A kernel writer's values must come from the kernels that were submitted. A dispatch mode sees every ATen operator,
whether Python or C++ calls it; what allocates, views, fills or copies memory is nobody's arithmetic, and anything
else is torch doing the work.
"""

from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["OperationTrace", "computing_operations"]

# Allocation, metadata, initialisation and movement: none of these computes a value of the output.
_INNOCENT = frozenset(
    [
        "_reshape_alias",
        "_to_copy",
        "_unsafe_view",
        "alias",
        "alias_copy",
        "arange",
        "as_strided",
        "clone",
        "contiguous",
        "copy",
        "copy_",
        "detach",
        "detach_",
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "expand",
        "expand_copy",
        "fill",
        "fill_",
        "flatten",
        "full",
        "full_like",
        "is_pinned",
        "is_same_size",
        "item",
        "_local_scalar_dense",
        "lift_fresh",
        "movedim",
        "narrow",
        "new_empty",
        "new_empty_strided",
        "new_full",
        "new_ones",
        "new_zeros",
        "ones",
        "ones_like",
        "permute",
        "pin_memory",
        "record_stream",
        "resize_",
        "reshape",
        "select",
        "set_",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "squeeze_",
        "stride",
        "sym_size",
        "t",
        "transpose",
        "transpose_",
        "unbind",
        "unflatten",
        "unsqueeze",
        "unsqueeze_",
        "view",
        "view_as",
        "zero",
        "zero_",
        "zeros",
        "zeros_like",
    ]
)


class OperationTrace(TorchDispatchMode):
    """Context that collects the names of the operators dispatched on this thread."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The default imports the whole of torch's compiler at the first traced operator, for a second.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Note the operator's name and let it run."""
        self.names.add(str(func).rsplit(".", 1)[0])
        return func(*args, **(kwargs or {}))


def computing_operations(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the traced operators that compute values, sorted.

    Args:
        names: Names as :class:`OperationTrace` collects them, for instance ``"aten.relu"``.
    """
    return tuple(sorted(n for n in set(names) if n.removeprefix("aten.") not in _INNOCENT))
