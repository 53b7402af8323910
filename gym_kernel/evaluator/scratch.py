"""Folders that live as long as their process: one for each host, one inside it for each worker."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from gym_kernel.evaluator.own_uid import uid_for_worker
from gym_kernel.evaluator.processes import process_is_alive

__all__ = ["HostScratch", "remove_folder"]

_PREFIX = "gym-kernel-host-"


class HostScratch:
    """The host's own folder under the temporary directory, removed with the host.

    What a host that was killed could not remove is swept by the next host of the same user.
    """

    def __init__(self) -> None:
        base = Path(tempfile.gettempdir())
        _sweep(base)
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getuid()}-{os.getpid()}-", dir=base))

    def become_temporary_folder(self) -> None:
        """Send this process's own temporary files and compiler caches, and its judges', in here too."""
        folder = self.path / "tmp"
        folder.mkdir(mode=0o700)
        for name in ("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
            os.environ[name] = str(folder)
        tempfile.tempdir = None  # chosen again at its next use

    def worker_folder(self, worker_id: int, *, own_uid: bool = False) -> Path:
        """Make the folder of one worker.

        Args:
            worker_id: Number of the worker.
            own_uid: Whether the folder belongs to a user that no other worker has.
        """
        folder = self.path / f"worker-{worker_id}"
        folder.mkdir(mode=0o700)
        if own_uid:
            # Passed through by all workers, listed by none.
            self.path.chmod(0o711)
            uid = uid_for_worker(os.getpid(), worker_id)
            os.chown(folder, uid, uid)
        return folder

    def remove(self) -> None:
        """Remove everything."""
        remove_folder(self.path)


def remove_folder(folder: Path) -> None:
    """Remove a folder that a submission may have filled in any way it liked."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    # A submission can take its own permissions away; the owner can give them back.
    for root, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(root, name)
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _sweep(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}{os.getuid()}-*"):
        pid = folder.name.removeprefix(_PREFIX).split("-")[1]
        if pid.isdigit() and not process_is_alive(int(pid)):
            remove_folder(folder)
