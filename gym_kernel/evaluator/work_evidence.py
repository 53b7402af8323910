"""Watching one call in the worker: operators, ways out of torch, kernels.

Two observers see the operators of every call, so that there is no unobserved one to behave differently in: a
dispatch mode, and the profiler, which also sees the operators inside other operators, on other threads, and those
that were hidden from the mode. In calls that the judge picks the profiler, through CUPTI, sees the GPU's kernels.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.autograd.profiler import profile as autograd_profile
from torch.overrides import TorchFunctionMode
from torch.utils.dlpack import from_dlpack

from gym_kernel.evaluator.canary import SPIN_KERNEL
from gym_kernel.evaluator.operator_forest import OperatorForest, is_made_of_others
from gym_kernel.evaluator.operator_trace import OperatorTrace
from gym_kernel.evaluator.own_work import is_innocent_kernel
from gym_kernel.evaluator.store_journal import StoreJournal, count_stores
from gym_kernel.evaluator.whole_numbers import WholeNumbers
from gym_kernel.evaluator.worker_messages import KernelRecord, Profile, WorkEvidence

__all__ = ["Observation", "Witness", "own_libraries"]

_TO_DLPACK = torch.Tensor.__dlpack__
_FROM_DLPACK = from_dlpack
_CONVERSIONS = {
    _TO_DLPACK: "Tensor.__dlpack__",
    torch.Tensor.numpy: "Tensor.numpy",
    torch.Tensor.__array__: "Tensor.__array__",
    torch.Tensor.tolist: "Tensor.tolist",
    torch.Tensor.apply_: "Tensor.apply_",
    torch.Tensor.map_: "Tensor.map_",
    torch.Tensor.map2_: "Tensor.map2_",
}
# Fewer elements than this in a call are sizes and the like, not the values that are asked for.
_LARGE_ELEMENTS = 1024
_MOST_NAMES = 200


class Witness:
    """Collects the evidence of one call at a time.

    Args:
        device: Where the submission runs.
    """

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._journal = None if self._on_gpu else StoreJournal()
        if self._journal is not None:
            count_stores(self._journal)

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
    def watch(
        self, *, profiled: bool, arguments: Sequence[Any] = (), model: torch.nn.Module | None = None
    ) -> Iterator[Observation]:
        """Observe what a ``with`` block does; the observation's evidence is complete when it has ended.

        Args:
            profiled: Whether to record the GPU's kernels too.
            arguments: What ``forward`` is given.
            model: Whose ``forward`` it is.
        """
        numbers = WholeNumbers(
            [a for a in arguments if isinstance(a, torch.Tensor)], () if model is None else _kept(model)
        )
        operations, conversions = OperatorTrace(numbers, self._journal), _ConversionTrace()
        observation = Observation()
        if self._journal is not None:
            self._journal.start()
        with contextlib.ExitStack() as stack:
            profiler = stack.enter_context(_profiler(on_gpu=self._on_gpu and profiled))
            stack.enter_context(conversions)
            stack.enter_context(operations)
            yield observation
        own_elements, zero_elements = self._own_elements(observation.outputs)
        observation.evidence = WorkEvidence(
            operations=tuple(sorted(operations.computed))[:_MOST_NAMES],
            conversions=conversions.names(),
            bookkeeping=tuple(sorted(operations.counted - operations.computed))[:_MOST_NAMES],
            stored_elements=0 if self._journal is None else self._journal.decided,
            own_elements=own_elements,
            zero_elements=zero_elements,
            compiled=_compiled(),
            profile=_profile(profiler, operations, on_gpu=self._on_gpu and profiled),
        )

    def _own_elements(self, outputs: Sequence[torch.Tensor]) -> tuple[int, int]:
        return (0, 0) if self._journal is None else self._journal.count_own(outputs)


@dataclass
class Observation:
    """What a watched block did.

    Attributes:
        evidence: Filled in when the block has ended.
        outputs: What ``forward`` returned, to be filled in by the block.
    """

    evidence: WorkEvidence = field(default_factory=WorkEvidence)
    outputs: Sequence[torch.Tensor] = ()


def _kept(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Plain parameters and buffers of a model, without a step into its own code: this is no part of the timed call."""
    modules, known = [model], {id(model)}
    # Grows while it is gone through.
    for module in modules:
        kept: dict[str, Any] = object.__getattribute__(module, "__dict__")
        for name in ("_parameters", "_buffers"):
            for value in dict.values(dict.get(kept, name) or {}):
                if type(value) in (torch.Tensor, torch.nn.Parameter):
                    yield value
        for inner in dict.values(dict.get(kept, "_modules") or {}):
            if inner is not None and id(inner) not in known:
                known.add(id(inner))
                modules.append(inner)


class _ConversionTrace(TorchFunctionMode):
    """Counts what takes ways out of torch."""

    def __init__(self) -> None:
        super().__init__()
        self._elements: Counter[str] = Counter()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Note a conversion and let it happen."""
        name = _CONVERSIONS.get(func)
        if name is not None and not (func is _TO_DLPACK and _torch_asks()):
            self._elements[name] += args[0].numel()
        return func(*args, **(kwargs or {}))

    def names(self) -> tuple[str, ...]:
        """Names of the ways out that values took in earnest: small tensors add up."""
        large = self._elements.total() >= _LARGE_ELEMENTS
        return tuple(sorted(name for name, elements in self._elements.items() if elements)) if large else ()


def _torch_asks() -> bool:
    """Whether it is torch itself that takes a tensor over by DLPack, for which the values stay where they are."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not _TO_DLPACK.__code__:
        frame = frame.f_back
    return frame is not None and frame.f_back is not None and frame.f_back.f_code is _FROM_DLPACK.__code__


@contextlib.contextmanager
def _profiler(*, on_gpu: bool) -> Iterator[autograd_profile]:
    with autograd_profile(
        use_kineto=True,
        use_cpu=True,
        use_device="cuda" if on_gpu else None,
        # For the dtypes of what operators are given.
        record_shapes=True,
        experimental_config=_ExperimentalConfig(profile_all_threads=True, capture_overload_names=True),
    ) as profiler:
        yield profiler


def _profile(profiler: autograd_profile, trace: OperatorTrace, *, on_gpu: bool) -> Profile:
    results = profiler.kineto_results
    assert results is not None, "The profiler has stopped."
    kernels, operators = [], []
    for event in results.events():
        if event.device_type() == torch.autograd.DeviceType.CUDA:
            kernels.append(event)
        elif "::" in event.name():
            operators.append(event)
    operations = {e.name() for e in operators if not is_made_of_others(e.name(), e.overload_name())}
    forest = OperatorForest(operators, trace.kinds)
    own_kernels = _compiled_by_triton() if on_gpu else ()
    kernels.sort(key=lambda event: event.start_ns())
    work = [k for k in _work(kernels) if k.linked_correlation_id() not in forest.bookkeeping]
    marks = [event.start_ns() for event in kernels if SPIN_KERNEL in event.name()]
    ended_ns = marks[-1] if marks else float("inf")
    # After the mark comes the harness's copy of the output, and nothing else.
    unjoined = [
        k for k in kernels if k.start_ns() + k.duration_ns() > ended_ns and not is_innocent_kernel(k.name())
    ]
    return Profile(
        operations=tuple(sorted(operations))[:_MOST_NAMES],
        hidden=tuple(sorted(forest.hidden))[:_MOST_NAMES],
        saw_kernels=on_gpu,
        kernels_us=_kernels_us(kernels),
        own_us=_sum_us(k for k in work if not is_innocent_kernel(k.name())),
        moved_us=_sum_us(k for k in work if is_innocent_kernel(k.name())),
        kernels=tuple(
            KernelRecord(
                k.name()[:300], k.duration_ns() / 1000, k.linked_correlation_id() in forest.bookkeeping
            )
            for k in kernels[:_MOST_NAMES]
        ),
        unjoined=tuple(k.name()[:120] for k in unjoined[:4]),
        own_kernels=own_kernels,
    )


def _kernels_us(kernels: list[Any]) -> float:
    """Time that the kernels between spin and mark took, in microseconds.

    From the spin's end to the last one's, or the sum of their durations where that is less: under the profiler launches
    take longer, and then there are gaps that are no part of the work.
    """
    work = _work(kernels)
    if not work:
        return 0.0
    spin = [event for event in kernels if SPIN_KERNEL in event.name()][-2]
    ended_ns = max(event.start_ns() + event.duration_ns() for event in work)
    span_ns = ended_ns - spin.start_ns() - spin.duration_ns()
    return max(min(span_ns / 1000, _sum_us(work)), 0.0)


def _work(kernels: Sequence[Any]) -> Sequence[Any]:
    """The kernels between spin and mark."""
    marks = [i for i, event in enumerate(kernels) if SPIN_KERNEL in event.name()]
    return kernels[marks[-2] + 1 : marks[-1]] if len(marks) > 1 else ()


def _sum_us(kernels: Iterable[Any]) -> float:
    return sum(kernel.duration_ns() for kernel in kernels) / 1000


def _compiled_by_triton() -> tuple[str, ...]:
    """Names of the kernels in this worker's own Triton cache."""
    cache = Path(os.environ["TRITON_CACHE_DIR"])
    return tuple(sorted({path.stem for path in cache.glob("*/*.cubin")}))[:_MOST_NAMES]


def _compiled() -> int:
    """How many functions torch.compile has compiled in this process, and kernels Inductor, which works without it."""
    dynamo, inductor = sys.modules.get("torch._dynamo.utils"), sys.modules.get("torch._inductor.metrics")
    frames = 0 if dynamo is None else int(dynamo.counters["frames"]["ok"])
    return frames + (0 if inductor is None else int(inductor.generated_kernel_count))


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
