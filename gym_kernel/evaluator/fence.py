"""The fence round a worker: what a submission can reach of the machine.

The tier is found out by trying, reported in every verdict, and can be required.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from gym_kernel.errors import IsolationUnavailable

__all__ = ["FenceLimits", "Isolation", "choose_isolation", "enter_fence"]


class Isolation(str, Enum):
    """Isolation tiers, weakest first."""

    PROCESS = "process"


@dataclass(frozen=True)
class FenceLimits:
    """Bounds of what one worker may use.

    ``RLIMIT_AS`` is never set: CUDA reserves address ranges far beyond what it uses.

    Attributes:
        file_bytes: Largest file it may write.
        open_files: Most descriptors it may hold.
    """

    file_bytes: int = 4 << 30
    open_files: int = 4096


def choose_isolation(wanted: str) -> Isolation:
    """Turn ``"auto"`` or a tier's name into a tier that this machine offers.

    Raises:
        IsolationUnavailable: The tier that was asked for cannot be had.
    """
    if wanted in ("auto", Isolation.PROCESS.value):
        return Isolation.PROCESS
    raise IsolationUnavailable(
        f"Isolation {wanted!r} cannot be had here; pass isolation='auto' or isolation='process'."
    )


def enter_fence(tier: Isolation, scratch: Path, limits: FenceLimits = FenceLimits()) -> None:
    """Confine the calling process, before it has seen a submission or touched the device.

    Args:
        tier: Tier to enter.
        scratch: Folder of this worker; home, temporary files and compiler caches go there.
        limits: Resource bounds.
    """
    _move_into(scratch)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_FSIZE, limits.file_bytes)
    _lower(resource.RLIMIT_NOFILE, limits.open_files)


def _move_into(scratch: Path) -> None:
    places = {
        "HOME": scratch / "home",
        "TMPDIR": scratch / "tmp",
        "XDG_CACHE_HOME": scratch / "cache",
        "TRITON_HOME": scratch / "home",
        "TRITON_CACHE_DIR": scratch / "triton",
        "TORCH_EXTENSIONS_DIR": scratch / "extensions",
        "TORCHINDUCTOR_CACHE_DIR": scratch / "inductor",
        "CUDA_CACHE_PATH": scratch / "cuda",
    }
    for name, folder in places.items():
        folder.mkdir(mode=0o700, exist_ok=True)
        os.environ[name] = str(folder)
    os.chdir(scratch)


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (limit, limit))
