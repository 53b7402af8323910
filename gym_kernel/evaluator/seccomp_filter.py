"""The system calls that a worker does without.

A deny-list: what honest kernels, compilers and the CUDA driver use is too wide a set to list.
"""

from __future__ import annotations

import errno
import functools
import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gym_kernel.evaluator.kernel_calls import Namespace

if TYPE_CHECKING:
    from pyseccomp import SyscallFilter

__all__ = ["refuse_system_calls", "seccomp_is_available"]

# Other processes' memory and state, the kernel itself, mounts, and doors past path checks.
_REFUSED = (
    "acct", "add_key", "bpf", "chroot", "delete_module", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick",
    "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup", "kcmp", "kexec_file_load", "kexec_load",
    "keyctl", "migrate_pages", "mount", "mount_setattr", "move_mount", "name_to_handle_at", "open_by_handle_at",
    "open_tree", "perf_event_open", "pidfd_getfd", "pivot_root", "process_madvise", "process_mrelease",
    "process_vm_readv", "process_vm_writev", "ptrace", "quotactl", "reboot", "request_key", "setns", "swapoff",
    "swapon", "syslog", "umount2", "unshare", "userfaultfd",
)  # fmt: skip
# Objects that would outlive the worker where there is no IPC namespace.
_REFUSED_OBJECTS = ("mq_open", "msgget", "semget", "shmget")
# Calls that take a process or thread id first: only zero, the caller itself, is let through.
_OWN_ONLY = ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler")
_OWN_ONLY_SECOND = ("ioprio_set", "setpriority")

_PR_SET_PDEATHSIG = 1
_SOCKET_TYPE_MASK = 0xF
_WORD = 0xFFFFFFFF
_F_SETOWN, _F_SETOWN_EX = 8, 15
_FIOSETOWN, _SIOCSPGRP = 0x8901, 0x8902


def seccomp_is_available() -> bool:
    """Whether system calls can be filtered here: the kernel does it, and the system has libseccomp."""
    try:
        _common_filter(shares_pids=True)
    except (ImportError, OSError, RuntimeError):
        return False
    return os.path.exists("/proc/sys/kernel/seccomp")


def refuse_system_calls(*, shares_pids: bool, confines_signals: bool) -> None:
    """Install the filter in this process and what it starts, for ever. It must have a single thread.

    Args:
        shares_pids: Whether other processes can be named in here, so that calls that name one are refused.
        confines_signals: Whether this process may signal only itself and its group, for want of another bound.

    Raises:
        OSError: The kernel refused.
    """
    if confines_signals:
        _signal_filter(os.getpid()).load()
    _common_filter(shares_pids).load()


def _signal_filter(own_pid: int) -> SyscallFilter:
    import pyseccomp as seccomp

    rules = _new_filter()
    refuse = seccomp.ERRNO(errno.EPERM)
    rules.add_rule(refuse, "tgkill", seccomp.Arg(0, seccomp.NE, own_pid))
    # Any other number than zero and its own; a rule can look at an argument only once.
    rules.add_rule(refuse, "kill", seccomp.Arg(0, seccomp.GT, own_pid))
    for mask, value in _blocks(1, own_pid):
        rules.add_rule(refuse, "kill", seccomp.Arg(0, seccomp.MASKED_EQ, mask, value))
    for call in ("pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "tkill"):
        _refuse_if_known(rules, refuse, call)
    for command in (_F_SETOWN, _F_SETOWN_EX):
        rules.add_rule(refuse, "fcntl", _low_word_is(1, command))
    for command in (_FIOSETOWN, _SIOCSPGRP):
        rules.add_rule(refuse, "ioctl", _low_word_is(1, command))
    return rules


@functools.lru_cache
def _common_filter(shares_pids: bool) -> SyscallFilter:
    import pyseccomp as seccomp

    rules = _new_filter()
    refuse = seccomp.ERRNO(errno.EPERM)
    for call in (*_REFUSED, *_REFUSED_OBJECTS):
        _refuse_if_known(rules, refuse, call)
    # glibc falls back to clone, whose flags can be looked at; those of clone3 are behind a pointer.
    _refuse_if_known(rules, seccomp.ERRNO(errno.ENOSYS), "clone3")
    for kind in Namespace:
        rules.add_rule(refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, int(kind), int(kind)))
    # Said to be done and not done, so that nothing leaves the process group that is killed at the end.
    for call in ("setsid", "setpgid"):
        rules.add_rule(seccomp.ERRNO(0), call)
    rules.add_rule(refuse, "prctl", _low_word_is(0, _PR_SET_PDEATHSIG))
    for call in _OWN_ONLY if shares_pids else ():
        _refuse_if_known(rules, refuse, call, seccomp.Arg(0, seccomp.NE, 0))
    for call in _OWN_ONLY_SECOND if shares_pids else ():
        _refuse_if_known(rules, refuse, call, seccomp.Arg(1, seccomp.NE, 0))
    _refuse_network(rules, refuse)
    return rules


def _refuse_network(rules: SyscallFilter, refuse: int) -> None:
    """No sockets but Unix ones, and of those none that can reach a service of this machine."""
    import pyseccomp as seccomp

    for call in ("socket", "socketpair"):
        rules.add_rule(refuse, call, seccomp.Arg(0, seccomp.NE, int(socket.AF_UNIX)))
        # A datagram names its receiver in memory, where no filter can look.
        datagram = int(socket.SOCK_DGRAM)
        rules.add_rule(refuse, call, seccomp.Arg(1, seccomp.MASKED_EQ, _SOCKET_TYPE_MASK, datagram))
    rules.add_rule(refuse, "connect")


def _new_filter() -> SyscallFilter:
    import pyseccomp as seccomp

    return seccomp.SyscallFilter(seccomp.ALLOW)


def _refuse_if_known(rules: SyscallFilter, action: int, call: str, *when: Any) -> None:
    import pyseccomp as seccomp

    number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, call)
    # Negative where this libseccomp is older than the call, or this machine does not have it.
    if number >= 0:
        rules.add_rule(action, number, *when)


def _low_word_is(position: int, value: int) -> Any:
    import pyseccomp as seccomp

    return seccomp.Arg(position, seccomp.MASKED_EQ, _WORD, value)


def _blocks(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Masks and values that together match the numbers from ``start`` up to, not including, ``end``."""
    while start < end:
        size = start & -start
        while start + size > end:
            size >>= 1
        yield ~(size - 1) & 0xFFFFFFFFFFFFFFFF, start
        start += size
