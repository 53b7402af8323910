"""The host's workers: forked under a supervisor, handed to a judge, killed with their whole group, reaped."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gym_kernel.evaluator.fence import Isolation, gives_own_uid, prepare_fence
from gym_kernel.evaluator.fence_limits import FenceLimits
from gym_kernel.evaluator.processes import close_fds_except, die_with_parent, group_is_empty, kill_group
from gym_kernel.evaluator.scratch import HostScratch, remove_folder
from gym_kernel.evaluator.supervisor import supervise

__all__ = ["OfferedWorker", "WorkerPool"]

_EXIT = struct.Struct("=i")


@dataclass(frozen=True)
class OfferedWorker:
    """A worker just forked, and what its judge needs to reach it.

    Attributes:
        worker_id: Number of the worker.
        pid: Process id of its supervisor; also the process group of all that belongs to it.
        fds: The judge's end of its socket, its exit pipe and its output pipe.
    """

    worker_id: int
    pid: int
    fds: tuple[int, int, int]


@dataclass(frozen=True)
class _Worker:
    worker_id: int
    pid: int
    exit_fd: int
    folder: Path


class WorkerPool:
    """Every worker of one host.

    Args:
        scratch: The host's scratch folder.
        isolation: Tier that workers enter.
        limits: What one worker may use.
    """

    def __init__(self, scratch: HostScratch, isolation: Isolation, limits: FenceLimits | None = None) -> None:
        self._scratch = scratch
        self._isolation = isolation
        self._limits = FenceLimits() if limits is None else limits
        self._by_pid: dict[int, _Worker] = {}
        self._ending: dict[int, tuple[_Worker, int]] = {}
        self._next_id = 1
        prepare_fence()
        self._own_uids = gives_own_uid(isolation, scratch.path)

    def owns(self, pid: int) -> bool:
        """Whether ``pid``, which has not been reaped, belongs to a worker."""
        if pid in self._by_pid:
            return True
        try:
            return os.getpgid(pid) in self._ending
        except ProcessLookupError:
            return False

    def pids(self) -> set[int]:
        """Pids of all supervisors that have not been reaped."""
        return set(self._by_pid)

    def fork(self, device: str, undo_host: Callable[[], None]) -> OfferedWorker:
        """Fork a worker for a device.

        Args:
            device: Device id.
            undo_host: Called first in the child.
        """
        worker_id = self._next_id
        self._next_id += 1
        folder = self._scratch.worker_folder(worker_id, own_uid=self._own_uids)
        judge_end, worker_end = socket.socketpair()
        exit_r, exit_w = os.pipe()
        output_r, output_w = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become_supervisor(undo_host, worker_end, output_w, folder, device)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, pid)
        worker_end.close()
        os.close(output_w)
        self._by_pid[pid] = _Worker(worker_id, pid, exit_w, folder)
        return OfferedWorker(worker_id, pid, (judge_end.detach(), exit_r, output_r))

    def kill(self, worker_id: int) -> None:
        """Kill a worker's process group; reaping follows when the kernel reports its end."""
        for worker in self._by_pid.values():
            if worker.worker_id == worker_id:
                kill_group(worker.pid)

    def kill_all(self) -> None:
        """Kill every worker's process group."""
        for pid in self._by_pid:
            kill_group(pid)

    def reap(self, pid: int) -> None:
        """Reap a process that belongs to a worker and has ended.

        When the last of a worker's processes is gone, its exit is reported and its folder removed. Nobody writes
        to its shared memory from then on.
        """
        worker = self._by_pid.pop(pid, None)
        if worker is not None:
            # Before the wait: while the zombie is there, its group's number cannot belong to anybody else.
            kill_group(pid)
        group = os.getpgid(pid)
        _, status = os.waitpid(pid, 0)
        if worker is not None:
            self._ending[pid] = (worker, status)
        if group in self._ending and group_is_empty(group):
            self._finish(*self._ending.pop(group))

    def _finish(self, worker: _Worker, status: int) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(worker.exit_fd, _EXIT.pack(status))
        os.close(worker.exit_fd)
        remove_folder(worker.folder)

    def _become_supervisor(
        self,
        undo_host: Callable[[], None],
        sock: socket.socket,
        output_fd: int,
        folder: Path,
        device: str,
    ) -> None:
        from gym_kernel.evaluator.worker import run_worker

        host_pid = os.getppid()

        def work(parent_pid: int) -> None:
            die_with_parent(parent_pid)
            close_fds_except({0, 1, 2, sock.fileno(), output_fd})
            run_worker(sock, output_fd, folder, device, self._isolation, self._limits)

        try:
            os.setpgid(0, 0)
            undo_host()
            supervise(host_pid, self._isolation, folder, self._limits, output_fd, work)
        except BaseException:
            traceback.print_exc(file=sys.stderr)
            sys.stderr.flush()
        finally:
            os._exit(70)
