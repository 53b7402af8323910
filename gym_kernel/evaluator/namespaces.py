"""Namespaces of the ``full`` tier: a worker sees no process, no mount, no network and no IPC object but its own.

    supervisor: unshare([USER] | PID)
     |--fork--> init: process 1; when it dies, all in there die
     |--fork--> worker: unshare(NS | IPC | NET), private mounts, then the rest of the fence

The worker is not process 1 itself, because the kernel keeps a process 1 from dying by signals of its own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from gym_kernel.evaluator.kernel_calls import MountFlag, Namespace, mount, unshare
from gym_kernel.evaluator.own_uid import unreachable_for_others
from gym_kernel.evaluator.processes import close_fds_except, die_with_parent, set_dumpable, set_undumpable

__all__ = ["enter_private_namespaces", "fork_init", "open_pid_namespace"]

_SAFE = MountFlag.NOSUID | MountFlag.NODEV


def open_pid_namespace() -> None:
    """Have the children of this process start in a new pid namespace.

    Without root's rights it takes a user namespace of its own, in which this process keeps its user id.

    Raises:
        OSError: The kernel, or the container this runs in, does not allow it.
    """
    if os.geteuid() == 0:
        unshare(Namespace.PID)
        return
    uid, gid = os.geteuid(), os.getegid()
    # The kernel hands the map files of an undumpable process to root.
    set_dumpable()
    try:
        unshare(Namespace.USER | Namespace.PID)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    finally:
        set_undumpable()


def fork_init() -> int:
    """Fork process 1 of the pid namespace that was just opened; returns its pid as this process sees it."""
    pid = os.fork()
    if pid:
        return pid
    try:
        # A parent outside of the namespace has no number in here.
        die_with_parent(0)
        # Ignored, so that the kernel reaps every orphan that comes here.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
        close_fds_except(())
        while True:
            signal.pause()
    finally:
        os._exit(70)


def enter_private_namespaces(
    scratch: Path, *, uid: int, visible: Sequence[Path], scratch_bytes: int, scratch_files: int
) -> None:
    """Give this process, which is in a new pid namespace already, its own mounts, network and IPC objects.

    Args:
        scratch: Folder of this worker; it becomes a file system in memory, with limits.
        uid: User and group that own the folder.
        visible: What must stay reachable for that user.
        scratch_bytes: Size of the scratch file system, and of the shared-memory one.
        scratch_files: Most files in each.

    Raises:
        OSError: The kernel, or the container this runs in, does not allow it.
    """
    unshare(Namespace.MOUNT | Namespace.IPC | Namespace.NET)
    mount("none", "/", "", MountFlag.RECURSIVE | MountFlag.PRIVATE)
    if uid != os.geteuid():
        _open_ways([*visible, scratch])
    owner = f"uid={uid},gid={uid if uid != os.geteuid() else os.getegid()}"
    size = f"size={scratch_bytes},nr_inodes={scratch_files}"
    mount("tmpfs", scratch, "tmpfs", _SAFE, f"{size},mode=0700,{owner}")
    mount("tmpfs", "/dev/shm", "tmpfs", _SAFE | MountFlag.NOEXEC, f"{size},mode=0700,{owner}")
    # The old one shows processes of other namespaces, and the CUDA driver does not start with it.
    mount("proc", "/proc", "proc", _SAFE | MountFlag.NOEXEC)


def _open_ways(paths: Sequence[Path]) -> None:
    """Cover folders that only their owner may search, with what must be seen of them bound back in."""
    for folder, below in unreachable_for_others(paths).items():
        kept = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in below}
        mount("tmpfs", folder, "tmpfs", _SAFE, "size=1m,mode=0755")
        for path, fd in kept.items():
            if os.path.isdir(f"/proc/self/fd/{fd}"):
                path.mkdir(mode=0o755, parents=True, exist_ok=True)
            else:
                path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                path.touch()
            mount(f"/proc/self/fd/{fd}", path, "", MountFlag.BIND | MountFlag.RECURSIVE)
            os.close(fd)
