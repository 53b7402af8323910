"""Reading the facts of a device, in a process that may use it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch

from gym_kernel.errors import DeviceUnavailable
from gym_kernel.evaluator.briefing import DeviceFacts

__all__ = ["lock_name", "read_device_facts"]


def read_device_facts(device: torch.device) -> DeviceFacts:
    """Facts of a device; on a GPU this makes a context.

    Raises:
        DeviceUnavailable: torch cannot use the device.
    """
    import triton

    if device.type == "cpu":
        return DeviceFacts(
            id="cpu",
            name=_cpu_name(),
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            l2_bytes=0,
            compute_capability="",
            threads=len(os.sched_getaffinity(0)),
            driver="",
            torch=str(torch.__version__),
            triton=triton.__version__,
            cuda="",
        )
    try:
        properties = torch.cuda.get_device_properties(device)
    except (RuntimeError, AssertionError) as error:
        raise DeviceUnavailable(f"torch cannot use {device}: {error}") from error
    return DeviceFacts(
        id=str(device),
        name=properties.name,
        memory_bytes=properties.total_memory,
        l2_bytes=properties.L2_cache_size,
        compute_capability=f"{properties.major}.{properties.minor}",
        threads=0,
        driver=_driver_version(),
        torch=str(torch.__version__),
        triton=triton.__version__,
        cuda=torch.version.cuda or "",
    )


def lock_name(device: torch.device) -> str:
    """Name of a device that every process agrees on, whatever ``CUDA_VISIBLE_DEVICES`` shows it."""
    if device.type == "cpu":
        return "cpu"
    return f"cuda-{torch.cuda.get_device_properties(device).uuid}"


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _driver_version() -> str:
    try:
        return Path("/sys/module/nvidia/version").read_text().strip()
    except OSError:
        return _driver_version_from_nvml()


def _driver_version_from_nvml() -> str:
    try:
        import pynvml
    except ImportError:
        return ""
    try:
        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError:
        return ""
