"""How long a kernel takes by CUPTI, in a process that has nothing to do with the evaluator.

    python -m benchmarks.cupti_durations MODULE KERNEL SHAPES CALLS ANSWER

MODULE is a file with ``ModelNew``, KERNEL the name of the kernel that its ``forward`` launches once, SHAPES the shapes
of its inputs as JSON (``[[4096, 1024], [4096, 1024]]``), CALLS how many calls are recorded. The L2 is flushed before
each call as the judge flushes it. ANSWER gets ``{"kernels_us": [...]}``.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import torch

__all__ = ["kernel_durations_us"]

_LEAST_FLUSH_BYTES = 64 << 20
_WARM_UPS = 10


def kernel_durations_us(
    model: torch.nn.Module, kernel: str, inputs: list[torch.Tensor], calls: int
) -> list[float]:
    """Record calls with torch's profiler.

    Args:
        model: Called with ``inputs``.
        kernel: Name of the kernel that it launches.
        inputs: Tensors on a GPU.
        calls: How many calls.

    Returns:
        The duration of each launch that CUPTI saw, in microseconds.

    Raises:
        RuntimeError: It did not see every launch once.
    """
    device = inputs[0].device
    l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    flush = torch.empty(max(2 * l2_bytes, _LEAST_FLUSH_BYTES), dtype=torch.uint8, device=device)

    def call() -> None:
        torch.cuda.synchronize()
        flush.zero_()
        model(*inputs)
        torch.cuda.synchronize()

    for _ in range(_WARM_UPS):
        call()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(calls):
            call()
    assert profiler.profiler is not None
    results = profiler.profiler.kineto_results
    assert results is not None, "The profiler has stopped."
    events = [e for e in results.events() if e.device_type() == torch.autograd.DeviceType.CUDA]
    durations_us = [event.duration_ns() / 1000 for event in events if kernel in event.name()]
    if len(durations_us) != calls:
        names = sorted({event.name()[:80] for event in events})
        raise RuntimeError(
            f"CUPTI saw {len(durations_us)} launches of {kernel} in {calls} calls. The device ran: {names}"
        )
    return durations_us


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernel_module", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Record one kernel."""
    module, kernel, shapes, calls, answer = sys.argv[1:]
    if not torch.cuda.is_available():
        raise SystemExit("CUPTI records kernels of a GPU, and torch sees none here.")
    model = _load(Path(module)).ModelNew().cuda()
    inputs = [torch.randn(shape, device="cuda") for shape in json.loads(shapes)]
    with torch.no_grad():
        durations_us = kernel_durations_us(model, kernel, inputs, int(calls))
    Path(answer).write_text(json.dumps({"kernels_us": durations_us}), encoding="utf-8")


if __name__ == "__main__":
    main()
