"""Whether somebody else computes on the device while a kernel is timed."""

from __future__ import annotations

import os
from typing import Any

from gym_kernel.evaluator.briefing import DeviceFacts
from gym_kernel.evaluator.processes import descendants_of

__all__ = ["is_contended"]


def is_contended(facts: DeviceFacts, worker_pid: int) -> bool:
    """Ask NVML for compute processes that are not of this judge's family.

    Args:
        facts: The device.
        worker_pid: The worker that was just timed.

    Returns:
        ``False`` on a CPU, and where NVML cannot tell (not installed, or it reports process ids of another
        namespace, so that this process does not find itself in the list).
    """
    if not facts.is_cuda:
        return False
    pids = _compute_pids(facts)
    if os.getpid() not in pids:
        return False
    family = {os.getpid(), worker_pid, *descendants_of(os.getppid())}
    return bool(pids - family)


def _compute_pids(facts: DeviceFacts) -> set[int]:
    try:
        import pynvml
    except ImportError:
        return set()
    try:
        pynvml.nvmlInit()
        handle = _handle(pynvml, facts)
        return {process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)}
    except pynvml.NVMLError:
        return set()


def _handle(pynvml: Any, facts: DeviceFacts) -> Any:
    import torch

    # CUDA_VISIBLE_DEVICES renumbers devices for torch, not for NVML; the UUID is the same for both.
    uuid = torch.cuda.get_device_properties(facts.id).uuid
    return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
