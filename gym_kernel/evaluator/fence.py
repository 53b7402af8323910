"""The fence round a worker: what a submission can reach of the machine.

The tier is found out by trying, reported in every verdict, and can be required. ``docs/isolation.md`` says what each
of them stops and what not.
"""

from __future__ import annotations

import contextlib
import os
from enum import Enum
from pathlib import Path

from gym_kernel.errors import ConfigurationError, IsolationUnavailable
from gym_kernel.evaluator.capabilities import Capability, has_capabilities, keep_capabilities
from gym_kernel.evaluator.fence_limits import FenceLimits, lower_limits
from gym_kernel.evaluator.kernel_calls import prctl
from gym_kernel.evaluator.landlock_rules import landlock_abi, restrict_with_landlock
from gym_kernel.evaluator.namespaces import enter_private_namespaces
from gym_kernel.evaluator.own_uid import become, can_change_user, unreachable_for_others
from gym_kernel.evaluator.processes import die_with_parent, set_dumpable, set_undumpable
from gym_kernel.evaluator.seccomp_filter import refuse_system_calls, seccomp_is_available
from gym_kernel.evaluator.visible_paths import device_files, gpu_files, visible_paths

__all__ = [
    "Isolation",
    "check_isolation_name",
    "choose_isolation",
    "enter_fence",
    "gives_own_uid",
    "prepare_fence",
]

_PR_SET_NO_NEW_PRIVS = 38
_AUTO = "auto"


class Isolation(str, Enum):
    """Isolation tiers, weakest first."""

    PROCESS = "process"
    LANDLOCK = "landlock"
    FULL = "full"


def check_isolation_name(name: str) -> None:
    """Check that a name is ``"auto"`` or a tier's.

    Raises:
        ConfigurationError: It is neither.
    """
    known = [_AUTO, *(tier.value for tier in reversed(Isolation))]
    if name not in known:
        listing = ", ".join(map(repr, known))
        raise ConfigurationError(f"isolation={name!r} is not known; pass one of {listing}.")


def choose_isolation(wanted: str) -> Isolation:
    """Turn ``"auto"`` or a tier's name into a tier that works on this machine, which is found out by trying it.

    Raises:
        ConfigurationError: There is no tier of that name.
        IsolationUnavailable: The tier that was asked for cannot be had.
    """
    from gym_kernel.evaluator.fence_probe import probe_isolation

    check_isolation_name(wanted)
    report = probe_isolation()
    if wanted == _AUTO:
        return report.tier
    missing = report.missing_for(Isolation(wanted))
    if missing:
        raise IsolationUnavailable(
            f"Isolation {wanted!r} cannot be had here: {' '.join(missing)} "
            f"Or pass isolation='auto', which is {report.tier.value!r} on this machine."
        )
    return Isolation(wanted)


def prepare_fence() -> None:
    """Do once, in a process that forks workers, what each of them would do again; libraries are loaded, too."""
    # Seen before with fewer modules imported, when the tier was chosen.
    visible_paths.cache_clear()
    visible_paths()
    landlock_abi()
    seccomp_is_available()


def gives_own_uid(tier: Isolation, scratch_parent: Path) -> bool:
    """Whether the workers of this host get user ids of their own.

    Args:
        tier: Their tier.
        scratch_parent: Folder that holds their scratch folders.
    """
    if not can_change_user():
        return False
    if tier is Isolation.FULL or has_capabilities(Capability.DAC_READ_SEARCH):
        return True
    # Nothing could open a way to Python for another user here.
    return not unreachable_for_others([*visible_paths(), scratch_parent / "any"])


def enter_fence(
    tier: Isolation, scratch: Path, limits: FenceLimits = FenceLimits(), *, parent_pid: int | None = None
) -> None:
    """Confine the calling process, before it has seen a submission or touched the device.

    It must have a single thread. In the ``full`` tier it must be in a pid namespace of its own already.

    Args:
        tier: Tier to enter.
        scratch: Folder of this worker; home, temporary files and compiler caches go there. Who owns it is whom this
            process becomes.
        limits: Resource bounds.
        parent_pid: Process to die with; ``None`` for the present parent.

    Raises:
        OSError: A layer cannot be had, and this process must not go on.
    """
    parent_pid = os.getppid() if parent_pid is None else parent_pid
    uid = scratch.stat().st_uid
    if tier is Isolation.FULL:
        enter_private_namespaces(
            scratch,
            uid=uid,
            visible=visible_paths(),
            scratch_bytes=limits.scratch_bytes,
            scratch_files=limits.scratch_files,
        )
    _volunteer_for_the_oom_killer()
    lower_limits(limits, counts_processes=uid != os.geteuid() or tier is Isolation.FULL)
    _shed_rights(tier, uid, scratch)
    die_with_parent(parent_pid)
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _move_into(scratch)
    if tier is not Isolation.PROCESS:
        _restrict_files(tier, scratch)
    if seccomp_is_available():
        refuse_system_calls(
            shares_pids=tier is not Isolation.FULL, confines_signals=tier is Isolation.PROCESS
        )


def _shed_rights(tier: Isolation, uid: int, scratch: Path) -> None:
    if uid != os.geteuid():
        blocked = tier is not Isolation.FULL and unreachable_for_others([*visible_paths(), scratch])
        become(uid, read_everything=bool(blocked))
        return
    keep_capabilities(())
    if tier is Isolation.PROCESS:
        set_undumpable()
    else:
        # Landlock keeps other workers out, and the watchdog of the same user must count what this one holds.
        set_dumpable()


def _restrict_files(tier: Isolation, scratch: Path) -> None:
    own = [scratch, Path("/dev/shm")] if tier is Isolation.FULL else [scratch]
    restrict_with_landlock(readable=visible_paths(), owned=own, devices=device_files(), gpus=gpu_files())


def _volunteer_for_the_oom_killer() -> None:
    # Where the machine runs out of memory all the same, a worker has to go, and not its judge or the caller.
    if os.geteuid() != 0:
        # The kernel hands the files in there of an undumpable process to root.
        set_dumpable()
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    set_undumpable()


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
