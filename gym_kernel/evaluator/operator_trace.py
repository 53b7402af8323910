"""The dispatch mode that sees the operators of a call on the thread that makes it, and what it makes of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gym_kernel.evaluator.own_work import is_innocent_operation, is_torch_operation
from gym_kernel.evaluator.store_journal import StoreJournal
from gym_kernel.evaluator.whole_numbers import WholeNumbers

__all__ = ["OperatorKind", "OperatorTrace"]

# Views of memory that is somewhere else, and memory that is not filled yet: nothing moves.
_EMPTY = ("empty", "new_empty")


class OperatorKind(Enum):
    """What an operator did.

    Attributes:
        MOVED: Allocated, viewed, filled or copied memory.
        COUNTED: Bookkeeping: worked on whole numbers that stand for no values.
        COMPUTED: Anything else.
    """

    MOVED = "moved"
    COUNTED = "counted"
    COMPUTED = "computed"


class OperatorTrace(TorchDispatchMode):
    """Notes the operators dispatched on this thread, from Python or C++.

    Args:
        numbers: Knows where whole numbers come from.
        journal: Told what operators move; ``None`` where nobody counts stores.

    Attributes:
        computed: Names of operators that computed, or whose kind only their name can tell.
        counted: Names of operators that kept books.
        kinds: The kind of every call, in order, by the operator's name without its overload.
    """

    def __init__(self, numbers: WholeNumbers, journal: StoreJournal | None) -> None:
        super().__init__()
        self._numbers = numbers
        self._journal = journal
        self.computed: set[str] = set()
        self.counted: set[str] = set()
        self.kinds: dict[str, list[OperatorKind]] = defaultdict(list)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The default imports the whole of torch's compiler at the first traced operator, for a second.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Note what the operator is and let it run."""
        kwargs = kwargs or {}
        since = 0 if self._journal is None else self._journal.position
        result = func(*args, **kwargs)
        name = func.name() if hasattr(func, "name") else str(func)
        base = name.partition(".")[0]
        inputs = list(_tensors((*args, *kwargs.values())))
        results = list(_tensors((result,)))
        written = list(_tensors(_written(func, args, kwargs)))
        kind = self._kind(name, inputs, written, results)
        self.kinds[base].append(kind)
        (self.counted if kind is OperatorKind.COUNTED else self.computed).add(name)
        if self._journal is not None:
            self._follow_values(base, inputs, written, results, since)
        return result

    def _kind(
        self,
        name: str,
        inputs: Sequence[torch.Tensor],
        written: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
    ) -> OperatorKind:
        operator = name.partition("::")[2].partition(".")[0]
        if is_innocent_operation(name):
            kind = OperatorKind.MOVED
        elif self._numbers.is_bookkeeping(operator, inputs, written, results):
            kind = OperatorKind.COUNTED
        else:
            kind = OperatorKind.COMPUTED
        self._numbers.follow(operator, inputs, written, results)
        return kind

    def _follow_values(
        self,
        base: str,
        inputs: Sequence[torch.Tensor],
        written: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
        since: int,
    ) -> None:
        """Tell the journal where values have been moved to."""
        assert self._journal is not None, "Asked for only where stores are counted."
        if not is_torch_operation(base):
            for tensor in results:
                if _is_readable(tensor):
                    self._journal.emerged(tensor, since)
            return
        if not is_innocent_operation(base) or base.partition("::")[2].startswith(_EMPTY):
            return
        sources = [t for t in inputs if _is_readable(t) and not any(t is w for w in written)]
        there = {t.untyped_storage().data_ptr() for t in sources}
        for tensor in written or results:
            # A view, or memory copied onto itself, has what it had.
            if sources and _is_readable(tensor) and tensor.untyped_storage().data_ptr() not in there:
                self._journal.moved(sources, tensor)


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    """Arguments that an operator's schema says it writes to."""
    schema = getattr(func, "_schema", None)
    if schema is None or not schema.is_mutable:
        return
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield args[position] if position < len(args) else kwargs.get(argument.name)


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)


def _is_readable(tensor: torch.Tensor) -> bool:
    """Whether a tensor's elements lie in host memory, for anybody to look at."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and (
        tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and tensor.untyped_storage().nbytes() > 0
    )
