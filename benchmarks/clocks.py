"""The clocks of the GPU that is measured, so that a result can be told from one of a throttled device."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

__all__ = ["Clocks", "read_clocks", "visible_gpu"]


@dataclass(frozen=True)
class Clocks:
    """Clocks at one moment; NaN on a CPU and where NVML cannot tell.

    Attributes:
        sm_mhz: Of the multiprocessors, in MHz. An idle GPU lowers it.
        memory_mhz: Of the memory, in MHz.
    """

    sm_mhz: float = math.nan
    memory_mhz: float = math.nan


def read_clocks(device_id: str) -> Clocks:
    """Read the clocks without touching CUDA.

    Args:
        device_id: ``"cpu"`` or ``"cuda:0"``, numbered as ``CUDA_VISIBLE_DEVICES`` shows devices.
    """
    if device_id == "cpu":
        return Clocks()
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = _handle(pynvml, visible_gpu(device_id))
        return Clocks(
            sm_mhz=float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            memory_mhz=float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
        )
    except ImportError:
        _say_once("The clocks stay unknown: pip install nvidia-ml-py.")
    except pynvml.NVMLError as error:
        _say_once(f"The clocks stay unknown: NVML says {error}.")
    return Clocks()


def visible_gpu(device_id: str) -> str:
    """Name under which ``CUDA_VISIBLE_DEVICES`` would show that GPU alone: a number or a UUID.

    Args:
        device_id: ``"cuda"`` or ``"cuda:1"``.
    """
    number = int(device_id.partition(":")[2] or 0)
    shown = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return shown[number] if shown else str(number)


def _handle(pynvml: Any, gpu: str) -> Any:
    if gpu.isdecimal():
        return pynvml.nvmlDeviceGetHandleByIndex(int(gpu))
    return pynvml.nvmlDeviceGetHandleByUUID(gpu)


@cache
def _say_once(message: str) -> None:
    print(message, file=sys.stderr)
