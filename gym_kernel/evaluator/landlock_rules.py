"""Landlock: which files a worker may open, and whom it may signal or talk to."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

__all__ = ["MINIMUM_ABI", "landlock_abi", "restrict_with_landlock"]

MINIMUM_ABI = 6
"""First version that keeps signals and abstract sockets inside."""


@functools.lru_cache(maxsize=1)
def landlock_abi() -> int:
    """Version of Landlock in the running kernel; 0 where there is none."""
    try:
        import landlockpy

        return landlockpy.abi_version()
    except (ImportError, OSError):
        return 0


def restrict_with_landlock(
    *, readable: Sequence[Path], owned: Sequence[Path], devices: Sequence[Path], gpus: Sequence[Path]
) -> None:
    """Confine this process and what it starts, for ever. It must have a single thread.

    Args:
        readable: Files and folders to read and execute.
        owned: Folders to do anything in.
        devices: Device files to read and write.
        gpus: Device files to send ioctl commands to as well.

    Raises:
        OSError: The kernel refused.
    """
    from landlockpy import AccessFS, Ruleset, Scope

    read = AccessFS.READ_FILE | AccessFS.READ_DIR | AccessFS.EXECUTE
    special = AccessFS.MAKE_CHAR | AccessFS.MAKE_BLOCK | AccessFS.IOCTL_DEV
    device = AccessFS.READ_FILE | AccessFS.WRITE_FILE
    with Ruleset(scoped=Scope.ABSTRACT_UNIX_SOCKET | Scope.SIGNAL) as rules:
        everything = rules.handled_fs & ~special
        file_rights = AccessFS.READ_FILE | AccessFS.EXECUTE | AccessFS.WRITE_FILE | AccessFS.TRUNCATE
        for path in readable:
            rules.allow_path(path, read if path.is_dir() else read & file_rights)
        for path in owned:
            rules.allow_path(path, everything)
        for path in devices:
            rules.allow_path(path, device)
        for path in gpus:
            rules.allow_path(path, device | AccessFS.IOCTL_DEV)
        # What matters of other processes in there needs the right to trace them, which the rules take away.
        rules.allow_path("/proc", AccessFS.READ_FILE | AccessFS.READ_DIR)
        # The CUDA driver names its threads there, and does not start where it cannot.
        rules.allow_path("/proc/self", AccessFS.READ_FILE | AccessFS.WRITE_FILE | AccessFS.TRUNCATE)
        rules.restrict()
