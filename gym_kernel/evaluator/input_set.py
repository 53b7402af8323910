"""One set of hidden inputs: the judge's view of it, and the arena through which a worker sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gym_kernel.evaluator.arena import Arena, view
from gym_kernel.evaluator.input_kinds import InputKind, fill, tail_start
from gym_kernel.evaluator.worker_messages import Argument
from gym_kernel.tasks.task import Domain

__all__ = ["InputSet"]


class InputSet:
    """Inputs of one call.

    On a GPU the worker maps the arena read-only, so the judge's view is the only writable one. On a CPU the worker may
    write, so the judge keeps the values to itself and compares afterwards.

    Args:
        arena: Shared memory for every tensor argument.
        arguments: Arguments of ``forward``; tensors by their slot.
        domains: One domain for each tensor argument.
    """

    def __init__(self, arena: Arena, arguments: Sequence[Argument], domains: Sequence[Domain]) -> None:
        self.arena = arena
        self._arguments = arguments
        self._domains = domains
        self._shared = [view(arena.bytes, a.slot) for a in arguments if a.slot is not None]
        self._worker_may_write = arena.bytes.device.type == "cpu"
        self._own = [torch.empty_like(t) for t in self._shared] if self._worker_may_write else self._shared
        #: Calls of one kind whose references may be more or less exact: where ``NEGATIVE_TAIL`` lies, else 0.
        self.variant = 0

    def write(self, kind: InputKind, seed: int, official: Sequence[torch.Tensor] | None) -> None:
        """Write fresh contents; :meth:`publish` hands them on.

        Args:
            kind: Which kind of values.
            seed: Seed of this call alone.
            official: Tensors of ``get_inputs``, where this kind or task builds on them.
        """
        tail = tail_start(seed)
        self.variant = self.variant_of(kind, seed)
        for position, (tensor, domain) in enumerate(zip(self._own, self._domains, strict=True)):
            generator = torch.Generator(tensor.device).manual_seed((seed + position) % (1 << 63))
            given = None if official is None else official[position]
            fill(tensor, kind, domain, generator, given, tail)

    @staticmethod
    def variant_of(kind: InputKind, seed: int) -> int:
        """The variant that a seed gives."""
        return round(tail_start(seed)) if kind is InputKind.NEGATIVE_TAIL else 0

    def publish(self) -> None:
        """Let the worker see the contents; on a GPU it does already."""
        if self._worker_may_write:
            for shared, own in zip(self._shared, self._own, strict=True):
                shared.copy_(own)

    def arguments(self) -> list[Any]:
        """Arguments for the reference, with the judge's own tensors."""
        tensors = iter(self._own)
        return [a.value if a.slot is None else next(tensors) for a in self._arguments]

    def modified(self) -> int | None:
        """Position of the first tensor that the worker has changed, if any."""
        if not self._worker_may_write:
            return None
        for position, (shared, own) in enumerate(zip(self._shared, self._own, strict=True)):
            if not torch.equal(shared.view(torch.uint8), own.view(torch.uint8)):
                return position
        return None
