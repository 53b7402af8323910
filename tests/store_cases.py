"""Calls with kernels in Triton's interpreter, and how many elements of their outputs the witness found to be own.

Triton reads TRITON_INTERPRET when it is imported, so the tests run this in a child process, which prints JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
import triton
import triton.language as tl

from gym_kernel.evaluator.own_work import refuse_thin_work, refuse_work
from gym_kernel.evaluator.work_evidence import Witness

ROWS = 300


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def add_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def descriptor_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK])
    y = tl.make_tensor_descriptor(y_ptr, [n], [1], [BLOCK])
    start = tl.program_id(0) * BLOCK
    y.store([start], 2 * x.load([start]))


def launch(kernel: object, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y


def doubled(x: torch.Tensor) -> torch.Tensor:
    return launch(double_kernel, x, torch.empty_like(x))


def masked(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    double_kernel[(10,)](x, y, 0, BLOCK=256)
    return y


def through_a_buffer(make: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Work by torch on what a kernel has written into whole numbers."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        keys = make(x)
        launch(double_kernel, x.view(torch.int32), keys)
        return torch.sort(keys)[0]

    return forward


def counters(x: torch.Tensor) -> torch.Tensor:
    """A few whole numbers of a kernel's, summed by torch."""
    counts = torch.empty(64, dtype=torch.int64)
    launch(double_kernel, torch.arange(64), counts)
    return torch.cumsum(counts, 0)


kept = torch.empty(ROWS, 8)
Forward = Callable[[torch.Tensor], torch.Tensor]
# What is called, and the share of its output that is a kernel's own. In this order: some follow on others.
OWN: dict[str, tuple[Forward, float]] = {
    "whole": (doubled, 1),
    "atomics": (lambda x: launch(add_kernel, x, torch.zeros_like(x)), 1),
    "descriptors": (lambda x: launch(descriptor_kernel, x, torch.empty_like(x)), 1),
    "twice": (lambda x: launch(double_kernel, doubled(x), torch.empty_like(x)), 1),
    "a view of more": (lambda x: launch(double_kernel, x, torch.empty(2, ROWS, 8)[1]), 1),
    "every other place": (lambda x: doubled(x.reshape(-1)).view(-1, 2)[:, 0], 1),
    "transposed": (lambda x: doubled(x.t().contiguous()).t(), 1),
    "moved": (lambda x: doubled(x).t().contiguous().t().clone(), 1),
    "joined": (lambda x: torch.cat([doubled(part) for part in x.split(7)]), 1),
    "stacked": (lambda x: torch.stack([doubled(part) for part in x.split(10)]), 1),
    "narrowed": (lambda x: doubled(x.double()).float(), 1),
    "padded and cropped": (lambda x: doubled(torch.nn.functional.pad(x, (0, 8)))[:, :8].contiguous(), 1),
    "zeros elsewhere": (lambda x: torch.nn.functional.pad(doubled(x[:9]), (0, 0, 0, ROWS - 9)), 1),
    "half of the bits at a time": (
        lambda x: launch(double_kernel, x.view(torch.int64), torch.empty_like(x).view(torch.int64)).view(torch.float32),
        1,
    ),
    "a third": (lambda x: torch.cat([doubled(x[:100]), x[100:]]), 1 / 3),
    "torch alone": (lambda x: x.clone(), 0),
    "another buffer": (lambda x: (doubled(x), x.clone())[1], 0),
    "masked off": (masked, 0),
    "kept": (lambda x: launch(double_kernel, x, kept), 1),
    "kept from the last call": (lambda x: kept, 0),
    "written over": (lambda x: doubled(x).copy_(x), 0),
}  # fmt: skip


WHOLE: dict[str, Forward] = {
    "an empty buffer": through_a_buffer(lambda x: torch.empty(x.shape, dtype=torch.int32)),
    "a filled buffer": through_a_buffer(lambda x: torch.zeros(x.shape, dtype=torch.int32)),
    "a range": through_a_buffer(lambda x: torch.arange(x.numel(), dtype=torch.int32)),
    "small counters": counters,
}


@dataclass(frozen=True)
class Found:
    """What was seen of a call."""

    elements: int
    own: int
    zero: int
    decided: int
    borrowed: str
    thin: str
    thin_with_library: str


def watch(witness: Witness, forward: Forward) -> Found:
    x = torch.arange(1.0, ROWS * 8 + 1).reshape(ROWS, 8)
    with torch.no_grad(), witness.watch(profiled=True, arguments=[x]) as observation:
        y = forward(x)
        observation.outputs = [y]
    evidence = observation.evidence
    return Found(
        elements=y.numel(),
        own=evidence.own_elements,
        zero=evidence.zero_elements,
        decided=evidence.stored_elements,
        borrowed=refuse_work(evidence),
        thin=refuse_thin_work(evidence, 0, y.numel()),
        thin_with_library=refuse_thin_work(evidence, 1, y.numel()),
    )


if __name__ == "__main__":
    witness = Witness(torch.device("cpu"))
    calls = {name: forward for name, (forward, _) in OWN.items()} | WHOLE
    json.dump({name: asdict(watch(witness, forward)) for name, forward in calls.items()}, sys.stdout)
