"""The profiler's record of operators, as calls: what ran inside which, and what the dispatch mode did not see.

The events of a thread lie inside one another in time. Followed from the outermost inwards, an operator that is only
made of others is passed through; the first that is not is one call, which the dispatch mode must have seen as well.
What lies inside is that call's own doing. Calls are counted: the profiler, which sees every thread and cannot be
left out by switching modes off, must not count more of an operator than the mode.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gym_kernel.evaluator.operator_trace import OperatorKind
from gym_kernel.evaluator.own_work import is_innocent_operation, is_torch_operation

__all__ = ["OperatorForest", "is_made_of_others"]

# Where the registrations of torch's own kernels stand, in its sources or its Python files.
_TORCHS_OWN = re.compile(r"registered at \S*(?:aten/src/|torch/|/dev/null)")
_FLOATING = ("float", "double", "Half", "BFloat16", "complex", "Float8", "Float4")


@dataclass
class _Node:
    """An operator, and those that ran inside it on its thread."""

    event: Any
    inner: list[_Node] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.event.name())

    def works_on_floats(self) -> bool:
        """Whether a tensor that it was given holds floating-point numbers, as the profiler has it."""
        return any(kind in dtype for dtype in self.event.dtypes() for kind in _FLOATING)

    def descendants(self) -> list[_Node]:
        found = list(self.inner)
        for node in found:
            found.extend(node.inner)
        return found


class OperatorForest:
    """Compares the profiler's operators with those that the dispatch mode saw.

    Args:
        events: The profiler's events of operators, recorded with the dtypes of their inputs.
        seen: What the mode saw: the kinds of an operator's calls, in order, by its name without overload.

    Attributes:
        hidden: Names of the operators that the mode did not see, innocent ones left out.
        bookkeeping: Correlation ids of the operators that kept books, and of all that ran inside them.
    """

    def __init__(self, events: Iterable[Any], seen: Mapping[str, Sequence[OperatorKind]]) -> None:
        self.hidden: set[str] = set()
        self.bookkeeping: set[int] = set()
        self._left = {name: list(reversed(kinds)) for name, kinds in seen.items()}
        for roots in _forest(events).values():
            for root in roots:
                self._visit(root)

    def _visit(self, node: _Node) -> None:
        if is_torch_operation(node.name):
            left = self._left.get(node.name)
            if left:
                self._inside(node, left.pop())
                return
            if not is_made_of_others(node.name, node.event.overload_name()):
                self._refuse([node, *node.descendants()])
                return
        for inner in node.inner:
            self._visit(inner)

    def _inside(self, node: _Node, kind: OperatorKind) -> None:
        inner = node.descendants()
        if kind is OperatorKind.COUNTED:
            # Work on whole numbers has no use for floats; something else runs under its name.
            self.hidden.update(n.name for n in (node, *inner) if n.works_on_floats())
            if _is_replaced(node.name, node.event.overload_name()):
                self.hidden.add(node.name)
            self.bookkeeping.update(int(n.event.correlation_id()) for n in (node, *inner))
        elif kind is OperatorKind.MOVED:
            self._refuse(n for n in inner if n.name != node.name)

    def _refuse(self, nodes: Iterable[_Node]) -> None:
        for node in nodes:
            if is_made_of_others(node.name, node.event.overload_name()):
                continue
            if is_torch_operation(node.name) and not is_innocent_operation(node.name):
                self.hidden.add(node.name)


def _forest(events: Iterable[Any]) -> dict[int, list[_Node]]:
    """The outermost operators of every thread."""
    threads: dict[int, list[Any]] = defaultdict(list)
    for event in events:
        threads[event.start_thread_id()].append(event)
    forest = {}
    for thread, mine in threads.items():
        mine.sort(key=lambda event: (event.start_ns(), -event.duration_ns(), event.correlation_id()))
        roots: list[_Node] = []
        path: list[tuple[int, _Node]] = []
        for event in mine:
            start, end = event.start_ns(), event.start_ns() + event.duration_ns()
            while path and not (start < path[-1][0] or start == end == path[-1][0]):
                path.pop()
            node = _Node(event)
            (path[-1][1].inner if path else roots).append(node)
            path.append((end, node))
        forest[thread] = roots
    return forest


def _is_replaced(name: str, overload: str) -> bool:
    """Whether somebody other than torch has registered a kernel for one of torch's operators."""
    registrations = torch._C._dispatch_dump(_qualified(name, overload)).splitlines()
    return any("registered at" in line and not _TORCHS_OWN.search(line) for line in registrations)


def _qualified(name: str, overload: str) -> str:
    return f"{name}.{overload}" if overload else name


@functools.cache
def is_made_of_others(name: str, overload: str = "") -> bool:
    """Whether an operator only calls others, which are seen by themselves.

    Args:
        name: With its namespace, for instance ``"aten::max"``.
        overload: For instance ``"other"``; empty for the default one.
    """
    if not name.startswith("aten::"):
        return False
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(
            _qualified(name, overload), "CompositeImplicitAutograd"
        )
    except RuntimeError:
        # Known to TorchScript alone; nothing can run it here.
        return True
