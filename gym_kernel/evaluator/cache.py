"""Where this package keeps what it has measured."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_dir"]


def cache_dir() -> Path:
    """Directory of this user's cache, which need not exist and may not be writable.

    ``$GYM_KERNEL_CACHE`` where it is set, else ``gym-kernel`` under ``$XDG_CACHE_HOME``, else under
    ``~/.cache`` (XDG Base Directory Specification; a relative ``$XDG_CACHE_HOME`` is ignored as it asks).
    """
    own = os.environ.get("GYM_KERNEL_CACHE", "")
    if own:
        return Path(own).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(shared) if os.path.isabs(shared) else Path(os.path.expanduser("~")) / ".cache"
    return root / "gym-kernel"
