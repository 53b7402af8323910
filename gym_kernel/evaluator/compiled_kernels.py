"""Passing compiled Triton kernels from one import of a module to the next."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["hand_on_compiled"]


def hand_on_compiled(old: Any, new: Any) -> None:
    """Give a kernel of a module that was imported again what its predecessor had compiled.

    Both may be wrapped by an autotuner or by heuristics. Anything else, and a kernel whose source differs, is left
    alone; it compiles again from the disk cache.

    Args:
        old: Value of a name in the first import.
        new: Value of the same name in the second.
    """
    if "triton" not in sys.modules:
        return
    from triton.runtime.jit import JITFunction

    old, new = _innermost(old), _innermost(new)
    if not isinstance(old, JITFunction) or not isinstance(new, JITFunction) or old is new:
        return
    if old.cache_key == new.cache_key and hasattr(old, "device_caches"):
        new.device_caches.update(old.device_caches)


def _innermost(value: Any) -> Any:
    from triton.runtime.jit import JITFunction, KernelInterface

    while isinstance(value, KernelInterface) and not isinstance(value, JITFunction) and hasattr(value, "fn"):
        value = value.fn
    return value
