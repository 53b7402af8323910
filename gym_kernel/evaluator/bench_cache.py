"""The references of one judge, kept from one submission to the next."""

from __future__ import annotations

from collections import OrderedDict

import torch

from gym_kernel.evaluator.arena_pool import ArenaPool
from gym_kernel.evaluator.briefing import DeviceFacts
from gym_kernel.evaluator.device_sizes import at_fitting_sizes
from gym_kernel.evaluator.lane import Lane
from gym_kernel.evaluator.quiet_gate import QuietGate
from gym_kernel.evaluator.reference_bench import ReferenceBench
from gym_kernel.evaluator.roofline import Ceilings
from gym_kernel.tasks.task import Task

__all__ = ["BenchCache"]

_MAX_BENCHES = 64
_IDLE_ARENAS_SHARE = 0.25
_DEATHS_WAIT_S = 2.0


class BenchCache:
    """The benches of one judge, least recently used first out.

    Args:
        facts: The device.
        ceilings: What it can do.
        lane: The device's lane, which a caller of :meth:`get` must hold.
    """

    def __init__(self, facts: DeviceFacts, ceilings: Ceilings, lane: Lane) -> None:
        self.facts = facts
        self.lane = lane
        self.arenas = ArenaPool(
            torch.device(facts.id), keep_bytes=int(_IDLE_ARENAS_SHARE * facts.memory_bytes)
        )
        self._ceilings = ceilings
        self._benches: OrderedDict[str, ReferenceBench] = OrderedDict()

    def peek(self, task: Task) -> ReferenceBench | None:
        """The bench of a task if it is there already; needs no lane."""
        return self._benches.get(repr(task))

    def get(self, task: Task) -> ReferenceBench:
        """The bench of a task, made at its first use, at sizes that the device has memory for.

        Raises:
            TaskError: The reference does not run.
        """
        key = repr(task)
        if key not in self._benches:
            fitting = at_fitting_sizes(task, self.facts.memory_bytes) if self.facts.is_cuda else task
            self._benches[key] = ReferenceBench(fitting, self.facts, self._ceilings, self.arenas)
            while len(self._benches) > _MAX_BENCHES:
                self._benches.popitem(last=False)
        self._benches.move_to_end(key)
        return self._benches[key]

    def make_room(self, wanted_bytes: int, gate: QuietGate) -> None:
        """Leave so much of the device free as far as that can be done; a caller must hold the lane.

        Args:
            wanted_bytes: What a submission and its judge are going to need.
            gate: Where workers that die are announced; until they have, their memory is not free.
        """
        if not self.facts.is_cuda or self._free_bytes() >= wanted_bytes:
            return
        self.arenas.give_back_idle()
        if self._free_bytes() < wanted_bytes:
            gate.wait_for_silence(_DEATHS_WAIT_S)

    def _free_bytes(self) -> int:
        return torch.cuda.mem_get_info(torch.device(self.facts.id))[0]
