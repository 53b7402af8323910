"""Choosing a device without touching it: the caller's process must never initialise CUDA."""

from __future__ import annotations

import ctypes
import importlib.util
import numbers
import os
import re
from pathlib import Path
from typing import Any

from gym_kernel.errors import ConfigurationError, DeviceUnavailable

__all__ = ["cuda_device_count", "device_name", "resolve_device", "torch_has_cuda"]

_NAME = re.compile(r"auto|cpu|cuda(?::[0-9]{1,3})?")
_CUDA = re.compile(r"cuda(?::(?P<index>[0-9]+))?")


def device_name(device: Any) -> str:
    """The name of a device as this package has it: of a ``torch.device`` its text, of a number that GPU.

    Raises:
        ConfigurationError: It is none of ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, nor stands for one.
    """
    name = device
    if isinstance(device, numbers.Integral) and not isinstance(device, bool):
        name = f"cuda:{int(device)}"
    elif type(device).__module__ == "torch":
        # A torch.device, which is not imported for this.
        name = str(device)
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise ConfigurationError(f"device={device!r} is not known; pass 'auto', 'cpu', 'cuda' or 'cuda:1'.")


def resolve_device(wanted: str) -> str:
    """Turn ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"`` into a device id.

    Raises:
        ConfigurationError: The name is none of these.
        DeviceUnavailable: The GPU that was asked for is not there, or torch was built without CUDA.
    """
    if wanted == "cpu":
        return "cpu"
    if wanted == "auto":
        return "cuda:0" if torch_has_cuda() and cuda_device_count() else "cpu"
    match = _CUDA.fullmatch(wanted)
    if match is None:
        raise ConfigurationError(f"device={wanted!r} is not known; pass 'auto', 'cpu', 'cuda' or 'cuda:1'.")
    index = int(match["index"] or 0)
    count = cuda_device_count()
    if index >= count:
        found = f"{count} GPU(s)" if count else "no GPU"
        raise DeviceUnavailable(
            f"device={wanted!r} was asked for, but this machine shows {found}; pass device='cpu' or 'auto'."
        )
    if not torch_has_cuda():
        raise DeviceUnavailable(
            "This torch was built without CUDA; install a CUDA build of torch or pass device='cpu'."
        )
    return f"cuda:{index}"


def cuda_device_count() -> int:
    """Number of GPUs that ``CUDA_VISIBLE_DEVICES`` leaves visible, as NVML counts them."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    count = ctypes.c_uint(0)
    if nvml.nvmlInit_v2() != 0:
        return 0
    try:
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return 0
    finally:
        nvml.nvmlShutdown()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return count.value
    names = [name.strip() for name in visible.split(",") if name.strip()]
    # A negative index hides itself and all that follow.
    shown = next((i for i, name in enumerate(names) if name.startswith("-")), len(names))
    return min(shown, count.value)


def torch_has_cuda() -> bool:
    """Whether the installed torch was built for CUDA, read from its files and not by importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    try:
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return False
    return re.search(r"^cuda\b[^=]*=\s*['\"]", text, re.MULTILINE) is not None
