"""Measure what a device can do at best, once, and remember it.

The ceilings are what a plain copy and torch's own matrix products reach on this very device: a policy is
asked to match the hardware it runs on, not a brochure. The datasheet is the cross-check.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from gym_kernel.evaluator.briefing import DeviceFacts
from gym_kernel.evaluator.cache import cache_dir
from gym_kernel.evaluator.datasheet import DatasheetEntry, lookup
from gym_kernel.evaluator.roofline import Ceilings, CeilingSource

__all__ = ["cached", "cross_checked", "measure"]

_FORMAT = 3

# Outside these shares of the datasheet's figure a measurement is not believed: the device was busy or
# throttled below, the clock was wrong above.
_BELIEVED = (0.5, 1.1)

_CUDA_COPY_BYTES = 2 << 30
_CPU_COPY_BYTES = 64 << 20
# Rows of the left factor, inner size, columns of the right one.
_FLOAT32_PRODUCTS = ((4096, 4096, 4096), (2048, 8192, 2048))
_PRODUCTS = ((8192, 8192, 8192), (8192, 4096, 14336), (4096, 4096, 16384))
_CACHE_COPY_BYTES = (64 << 10, 256 << 10, 1 << 20, 4 << 20)

# Nothing an honest kernel does exceeds twice what a plain copy reaches in one core's cache on every core:
# a copy loads and stores, and the margin covers its call overhead and the clock's granularity.
_CPU_CACHE_MARGIN = 2.0
_UNKNOWN_GPU_MARGIN = 1.25


def cached(device_facts: DeviceFacts) -> Ceilings:
    """Ceilings of a device, from this user's cache or measured now.

    A cache file that is unreadable, incomplete or of another device, driver or torch is measured again; a
    cache that cannot be written is done without.

    Args:
        device_facts: The device and its software.

    Returns:
        Its ceilings, cross-checked with the datasheet where there is one.
    """
    key = _key(device_facts)
    path = cache_dir() / "ceilings" / f"{_file_name(device_facts, key)}.json"
    known = _read(path, key)
    if known is None:
        known = cross_checked(measure(device_facts.id), lookup(device_facts.name))
        _write(path, key, known)
    return known


def measure(device: str) -> Ceilings:
    """Measure a device's ceilings: under 1.5 s on a CPU, about two seconds on a GPU.

    Copies and products are timed in several rounds; the best median of a round counts, so that a
    disturbance does not lower a ceiling.

    Args:
        device: Name for ``torch.device``: ``"cpu"``, ``"cuda:0"``.

    Returns:
        Measured ceilings. On a GPU the floor's bandwidth is the datasheet's peak, or 1.25 times the measured
        copy where the product is unknown. On a CPU it is twice the best rate of one thread's copies inside
        its caches, times the cores.
    """
    import torch

    return _measure_cuda(torch.device(device)) if device.startswith("cuda") else _measure_cpu()


def cross_checked(measured: Ceilings, sheet: DatasheetEntry | None) -> Ceilings:
    """Replace the figures that the datasheet contradicts by the datasheet's own.

    Args:
        measured: What was measured.
        sheet: The product's datasheet, or None where it is unknown.

    Returns:
        ``measured`` where every figure is between 0.5 and 1.1 of the datasheet's; otherwise a copy with
        those outside replaced and ``source`` set to ``DATASHEET``.
    """
    if sheet is None:
        return measured
    low, high = _BELIEVED

    def doubtful(value: float, printed: float) -> bool:
        return not low * printed <= value <= high * printed

    rates = {
        dtype: sheet.flops_per_s[dtype]
        if dtype in sheet.flops_per_s and doubtful(rate, sheet.flops_per_s[dtype])
        else rate
        for dtype, rate in measured.flops_per_s.items()
    }
    bandwidth = measured.bandwidth_bytes_per_s
    if doubtful(bandwidth, sheet.bandwidth_bytes_per_s):
        bandwidth = sheet.bandwidth_bytes_per_s
    if rates == measured.flops_per_s and bandwidth == measured.bandwidth_bytes_per_s:
        return measured
    return Ceilings(bandwidth, rates, sheet.bandwidth_bytes_per_s, CeilingSource.DATASHEET)


def _measure_cuda(device: Any) -> Ceilings:
    import torch

    with torch.cuda.device(device):
        free, _ = torch.cuda.mem_get_info(device)
        size = min(_CUDA_COPY_BYTES, free // 4)
        source = torch.empty(size, dtype=torch.uint8, device=device).random_(0, 256)
        target = torch.empty_like(source)
        bandwidth = 2 * size / _best_cuda_s(partial(target.copy_, source), calls=5)
        del source, target
        rates = {name: _product_rate(device, name) for name in ("float32", "tf32", "float16", "bfloat16")}
        torch.cuda.empty_cache()
        sheet = lookup(torch.cuda.get_device_name(device))
    peak = sheet.bandwidth_bytes_per_s if sheet else _UNKNOWN_GPU_MARGIN * bandwidth
    return Ceilings(bandwidth, rates, max(peak, bandwidth))


def _product_rate(device: Any, name: str) -> float:
    """FLOP/s of the fastest of some products in a dtype on a GPU; float32 with TF32 off.

    Libraries have a kernel of its own for every layout and for many shapes, and no single product shows the best.
    """
    import torch

    dtype = torch.float32 if name == "tf32" else getattr(torch, name)
    shapes = _FLOAT32_PRODUCTS if name == "float32" else _PRODUCTS
    best = 0.0
    with _tf32(name == "tf32"):
        for m, k, n in shapes:
            # Random data: zeros draw less power and would run at clocks that no real product sees.
            a, a_by_columns = _both_layouts(torch.randn(m, k, device=device).to(dtype))
            b, b_by_columns = _both_layouts(torch.randn(k, n, device=device).to(dtype))
            for left, right in ((a, b), (a_by_columns, b), (a, b_by_columns)):
                seconds = _best_cuda_s(partial(torch.mm, left, right), calls=4, rounds=4)
                best = max(best, 2.0 * m * k * n / seconds)
    return best


def _both_layouts(matrix: Any) -> tuple[Any, Any]:
    """A matrix laid out by rows and by columns."""
    return matrix, matrix.t().contiguous().t()


@contextlib.contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _best_cuda_s(call: Callable[[], object], calls: int, rounds: int = 3) -> float:
    """Best median over rounds of the device time of one call, in seconds."""
    import torch

    for _ in range(3):
        call()
    best_ms = math.inf
    for _ in range(rounds):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(calls + 1)]
        events[0].record()
        for event in events[1:]:
            call()
            event.record()
        torch.cuda.synchronize()
        gaps_ms = [a.elapsed_time(b) for a, b in pairwise(events)]
        best_ms = min(best_ms, median(gaps_ms))
    return best_ms / 1e3


def _measure_cpu() -> Ceilings:
    import torch

    threads = torch.get_num_threads()
    # The small shapes of a CPU stay in its caches, so that is the memory whose ceiling counts.
    sizes = (*_CACHE_COPY_BYTES, _CPU_COPY_BYTES)
    bandwidth = max(_copy_rate(size, budget_s=0.1) for size in sizes)
    n = 768
    a, b, out = torch.randn(n, n), torch.randn(n, n), torch.empty(n, n)
    rate = 2.0 * n**3 / _best_cpu_s(partial(torch.mm, a, b, out=out), budget_s=0.3)
    torch.set_num_threads(1)
    try:
        in_cache = max(_copy_rate(size, budget_s=0.1) for size in _CACHE_COPY_BYTES)
    finally:
        torch.set_num_threads(threads)
    cores = max(os.cpu_count() or 1, threads)
    floor = _CPU_CACHE_MARGIN * cores * in_cache
    return Ceilings(bandwidth, {"float32": rate}, max(floor, bandwidth))


def _copy_rate(size: int, budget_s: float) -> float:
    """Bytes read plus bytes written per second by a copy of ``size`` bytes on the CPU."""
    import torch

    source, target = torch.ones(size // 4), torch.zeros(size // 4)
    return 2 * size / _best_cpu_s(partial(target.copy_, source), budget_s)


def _best_cpu_s(call: Callable[[], object], budget_s: float, rounds: int = 5) -> float:
    """Best median over rounds of the wall time of one call, in seconds; stops after ``budget_s``."""
    call()
    deadline = time.perf_counter() + budget_s
    best = math.inf
    for _ in range(rounds):
        samples = []
        for _ in range(25):
            start = time.perf_counter()
            call()
            stop = time.perf_counter()
            samples.append(stop - start)
            if stop > deadline:
                break
        best = min(best, median(samples))
        if time.perf_counter() > deadline:
            break
    return max(best, 1e-9)


def _key(facts: DeviceFacts) -> dict[str, str | int]:
    """Everything whose change makes a measurement void."""
    return {
        "format": _FORMAT,
        "name": facts.name,
        "uuid": _uuid(facts),
        "driver": facts.driver,
        "torch": facts.torch,
        "threads": facts.threads,
    }


def _uuid(facts: DeviceFacts) -> str:
    """Which of several equal GPUs this is; empty on a CPU and where torch cannot tell."""
    if not facts.is_cuda:
        return ""
    import torch

    try:
        return str(torch.cuda.get_device_properties(torch.device(facts.id)).uuid)
    except (AttributeError, RuntimeError, AssertionError):
        return facts.id


def _file_name(facts: DeviceFacts, key: dict[str, str | int]) -> str:
    readable = "-".join(str(part) for part in (facts.name, key["uuid"], facts.driver, facts.torch) if part)
    return re.sub(r"[^A-Za-z0-9.]+", "-", readable).strip("-.")[:150] or "device"


def _read(path: Path, key: dict[str, str | int]) -> Ceilings | None:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["key"] != key:
            return None
        fields = stored["ceilings"]
        rates = {str(dtype): _positive(rate) for dtype, rate in fields["flops_per_s"].items()}
        if "float32" not in rates:
            return None
        return Ceilings(
            _positive(fields["bandwidth_bytes_per_s"]),
            rates,
            _positive(fields["floor_bandwidth_bytes_per_s"]),
            CeilingSource(fields["source"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _positive(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < math.inf:
        raise ValueError(f"A ceiling must be a finite, positive number, not {value!r}.")
    return float(value)


def _write(path: Path, key: dict[str, str | int], ceilings: Ceilings) -> None:
    text = json.dumps({"key": key, "ceilings": dataclasses.asdict(ceilings)}, indent=1)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
