"""Watching one call in the worker: operators, ways out of torch, kernels.

Two observers see the operators of every call, so that there is no unobserved one to behave differently in: a
dispatch mode, and the profiler, which also sees the operators inside other operators, on other threads, and those
that were hidden from the mode. In calls that the judge picks the profiler, through CUPTI, sees the GPU's kernels.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import torch
from torch._C._profiler import _ExperimentalConfig
from torch.autograd.profiler import profile as autograd_profile
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gym_kernel.evaluator.canary import SPIN_KERNEL
from gym_kernel.evaluator.own_work import is_innocent_kernel
from gym_kernel.evaluator.worker_messages import KernelRecord, Profile, WorkEvidence

__all__ = ["Observation", "Witness", "own_libraries"]

_CONVERSIONS = {
    torch.Tensor.numpy: "Tensor.numpy",
    torch.Tensor.__array__: "Tensor.__array__",
    torch.Tensor.tolist: "Tensor.tolist",
}
# Below this a tensor holds sizes and the like, not the values that are asked for.
_LARGE_ELEMENTS = 1024
_MOST_NAMES = 200


class Witness:
    """Collects the evidence of one call at a time.

    Args:
        device: Where the submission runs.
    """

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._stores = _StoreCounter()
        if not self._on_gpu:
            self._stores.install()

    def warm_up(self) -> None:
        """Pay for the profiler's start-up before a submission waits for it.

        Raises:
            RuntimeError: The profiler sees nothing of the GPU.
        """
        device = torch.device("cuda") if self._on_gpu else torch.device("cpu")
        with self.watch(profiled=True) as observation:
            torch.zeros(1, device=device)
        if self._on_gpu and not observation.evidence.profile.kernels:
            raise RuntimeError(
                "CUPTI records no kernels here, so nobody could tell whose kernels run. Is another profiler attached, "
                "or the driver older than torch's CUDA?"
            )

    @contextlib.contextmanager
    def watch(self, *, profiled: bool) -> Iterator[Observation]:
        """Observe what a ``with`` block does; the observation's evidence is complete when it has ended.

        Args:
            profiled: Whether to record the GPU's kernels too.
        """
        operations, conversions = _OperatorTrace(), _ConversionTrace()
        self._stores.elements = 0
        observation = Observation()
        with contextlib.ExitStack() as stack:
            stack.enter_context(_numpy_conversions(conversions.names))
            profiler = stack.enter_context(_profiler(on_gpu=self._on_gpu and profiled))
            stack.enter_context(conversions)
            stack.enter_context(operations)
            yield observation
        observation.evidence = WorkEvidence(
            operations=tuple(sorted(operations.names))[:_MOST_NAMES],
            conversions=tuple(sorted(conversions.names)),
            bookkeeping=tuple(sorted(operations.bookkeeping - operations.names))[:_MOST_NAMES],
            stored_elements=self._stores.elements,
            compiled_frames=_compiled_frames(),
            profile=_profile(profiler, on_gpu=self._on_gpu and profiled),
        )


@dataclass
class Observation:
    """What a watched block did.

    Attributes:
        evidence: Filled in when the block has ended.
    """

    evidence: WorkEvidence = field(default_factory=WorkEvidence)


class _OperatorTrace(TorchDispatchMode):
    """Names of the operators dispatched on this thread, from Python or C++."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.bookkeeping: set[str] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The default imports the whole of torch's compiler at the first traced operator, for a second.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Note the operator's name and let it run."""
        result = func(*args, **(kwargs or {}))
        name = func.name() if hasattr(func, "name") else str(func)
        (self.names if _has_values(result) else self.bookkeeping).add(name)
        return result


class _ConversionTrace(TorchFunctionMode):
    """Names of the ways out of torch that were taken."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Note a conversion and let it happen."""
        name = _CONVERSIONS.get(func)
        if name is not None and args[0].numel() >= _LARGE_ELEMENTS:
            self.names.add(name)
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _numpy_conversions(names: set[str]) -> Iterator[None]:
    """Note tensors that numpy takes by itself, past the function mode."""
    take = numpy.from_dlpack

    def noted(x: Any, /, **kwargs: Any) -> Any:
        names.add("numpy.from_dlpack")
        return take(x, **kwargs)

    numpy.from_dlpack = noted
    try:
        yield
    finally:
        numpy.from_dlpack = take


class _StoreCounter:
    """Counts the elements that kernels store or update in Triton's interpreter."""

    def __init__(self) -> None:
        self.elements = 0

    def install(self) -> None:
        """Put this between the interpreter and its memory."""
        from triton.runtime import interpreter

        interpreter._interpreter = _CountedMemory(interpreter._interpreter, self)


class _CountedMemory:
    """The interpreter's memory operations, with what they write counted."""

    def __init__(self, memory: Any, counter: _StoreCounter) -> None:
        self._memory = memory
        self._counter = counter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def store(self, pointers: Any, values: Any, mask: Any) -> Any:
        """Store, and count the elements that the kernel decided about, masked ones too."""
        self._counter.elements += int(pointers.size)
        return self._memory.store(pointers, values, mask)

    def atomic_rmw(self, operation: Any, pointers: Any, values: Any, mask: Any, order: Any) -> Any:
        """Update, and count the elements that the kernel decided about, masked ones too."""
        self._counter.elements += int(pointers.size)
        return self._memory.atomic_rmw(operation, pointers, values, mask, order)

    def atomic_cas(self, pointers: Any, expected: Any, values: Any, order: Any) -> Any:
        """Exchange, and count every element."""
        self._counter.elements += int(pointers.size)
        return self._memory.atomic_cas(pointers, expected, values, order)


@contextlib.contextmanager
def _profiler(*, on_gpu: bool) -> Iterator[autograd_profile]:
    with autograd_profile(
        use_kineto=True,
        use_cpu=True,
        use_device="cuda" if on_gpu else None,
        experimental_config=_ExperimentalConfig(profile_all_threads=True),
    ) as profiler:
        yield profiler


def _profile(profiler: autograd_profile, *, on_gpu: bool) -> Profile:
    results = profiler.kineto_results
    assert results is not None, "The profiler has stopped."
    operations: set[str] = set()
    kernels = []
    for event in results.events():
        if event.device_type() == torch.autograd.DeviceType.CUDA:
            kernels.append(event)
        elif "::" in event.name():
            operations.add(event.name())
    operations = {name for name in operations if not _is_made_of_others(name)}
    kernels.sort(key=lambda event: event.start_ns())
    marks = [event.start_ns() for event in kernels if SPIN_KERNEL in event.name()]
    ended_ns = marks[-1] if marks else float("inf")
    # After the mark comes the harness's copy of the output, and nothing else.
    unjoined = [
        k for k in kernels if k.start_ns() + k.duration_ns() > ended_ns and not is_innocent_kernel(k.name())
    ]
    return Profile(
        operations=tuple(sorted(operations))[:_MOST_NAMES],
        saw_kernels=on_gpu,
        kernels_us=_kernels_us(kernels),
        kernels=tuple(KernelRecord(k.name()[:300], k.duration_ns() / 1000) for k in kernels[:_MOST_NAMES]),
        unjoined=tuple(k.name()[:120] for k in unjoined[:4]),
        own_kernels=_compiled_by_triton() if on_gpu else (),
    )


def _kernels_us(kernels: list[Any]) -> float:
    """Time that the kernels between spin and mark took, in microseconds.

    From the spin's end to the last one's, or the sum of their durations where that is less: under the profiler launches
    take longer, and then there are gaps that are no part of the work.
    """
    marks = [i for i, event in enumerate(kernels) if SPIN_KERNEL in event.name()]
    if len(marks) < 2:
        return 0.0
    spin, work = kernels[marks[-2]], kernels[marks[-2] + 1 : marks[-1]]
    if not work:
        return 0.0
    ended_ns = max(event.start_ns() + event.duration_ns() for event in work)
    span_ns = ended_ns - spin.start_ns() - spin.duration_ns()
    return float(max(min(span_ns, sum(event.duration_ns() for event in work)), 0)) / 1000


@functools.cache
def _is_made_of_others(name: str) -> bool:
    """Whether an operator only calls others, which are seen by themselves."""
    if not name.startswith("aten::"):
        return False
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
    if packet is None:
        return False
    overloads = [name if which == "default" else f"{name}.{which}" for which in packet.overloads()]
    return all(_is_composite(overload) for overload in overloads)


def _is_composite(overload: str) -> bool:
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(overload, "CompositeImplicitAutograd")
    except RuntimeError:
        # Known to TorchScript alone; nothing can run it here.
        return True


def _has_values(result: Any) -> bool:
    """Whether an operator's result holds floating-point tensors, or nothing that could tell."""
    tensors = [part for part in tree_leaves(result) if isinstance(part, torch.Tensor)]
    return not tensors or any(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors)


def _compiled_by_triton() -> tuple[str, ...]:
    """Names of the kernels in this worker's own Triton cache."""
    cache = Path(os.environ["TRITON_CACHE_DIR"])
    return tuple(sorted({path.stem for path in cache.glob("*/*.cubin")}))[:_MOST_NAMES]


def _compiled_frames() -> int:
    """How many functions torch.compile has compiled in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return 0 if dynamo is None else int(dynamo.counters["frames"]["ok"])


def own_libraries(scratch: Path) -> int:
    """Number of shared objects mapped from the scratch folder; only the submission can have put them there."""
    prefix = str(scratch)
    own: set[str] = set()
    with open(f"/proc/{os.getpid()}/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[5:]
            if path and path[0].startswith(prefix) and ".so" in path[0]:
                own.add(path[0].strip())
    return len(own)
