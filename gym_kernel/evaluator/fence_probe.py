"""Which layers of the fence this machine has, found out by entering them in processes that are thrown away."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from gym_kernel.evaluator.fence import Isolation, enter_fence, gives_own_uid
from gym_kernel.evaluator.landlock_rules import MINIMUM_ABI, landlock_abi
from gym_kernel.evaluator.namespaces import fork_init, open_pid_namespace
from gym_kernel.evaluator.own_uid import uid_for_worker
from gym_kernel.evaluator.processes import kill_group
from gym_kernel.evaluator.scratch import remove_folder
from gym_kernel.evaluator.seccomp_filter import seccomp_is_available

__all__ = ["IsolationReport", "Layer", "MissingLayer", "probe_isolation"]

_ANSWER_S = 30.0
_ANSWER_BYTES = 4_000


class Layer(str, Enum):
    """Layers that a machine may lack."""

    NAMESPACES = "namespaces"
    LANDLOCK = "landlock"
    SECCOMP = "seccomp"
    OWN_UID = "own uid"
    WHOLE = "the whole"


_NEEDED = {
    Isolation.FULL: (Layer.NAMESPACES, Layer.LANDLOCK, Layer.SECCOMP, Layer.WHOLE),
    Isolation.LANDLOCK: (Layer.LANDLOCK,),
    Isolation.PROCESS: (),
}


@dataclass(frozen=True)
class MissingLayer:
    """A layer that cannot be had.

    Attributes:
        layer: Which.
        text: Why, and what to do about it, in sentences.
    """

    layer: Layer
    text: str


@dataclass(frozen=True)
class IsolationReport:
    """What was found.

    Attributes:
        tier: The strongest tier that works.
        missing: Layers that cannot be had.
    """

    tier: Isolation
    missing: tuple[MissingLayer, ...]

    def missing_for(self, tier: Isolation) -> tuple[str, ...]:
        """What keeps a tier from being had; nothing where it works."""
        return tuple(lack.text for lack in self.missing if lack.layer in _NEEDED[tier])


def probe_isolation() -> IsolationReport:
    """Try every layer, and the strongest tier as a whole."""
    missing = [
        lack for lack in (_probe_namespaces(), _probe_landlock(), _probe_seccomp()) if lack is not None
    ]
    lacking = {lack.layer for lack in missing}
    for tier in (Isolation.FULL, Isolation.LANDLOCK):
        if lacking & set(_NEEDED[tier]):
            continue
        problem = _in_a_fork(lambda: _enter_whole(tier))  # noqa: B023
        if problem is None:
            return IsolationReport(tier, (*missing, *_probe_own_uid(tier)))
        layer = Layer.WHOLE if tier is Isolation.FULL else Layer.LANDLOCK
        missing.append(MissingLayer(layer, f"Tier {tier.value!r} does not work as a whole: {problem}."))
    return IsolationReport(Isolation.PROCESS, (*missing, *_probe_own_uid(Isolation.PROCESS)))


def _probe_namespaces() -> MissingLayer | None:
    problem = _in_a_fork(open_pid_namespace)
    if problem is None:
        return None
    if os.geteuid() == 0:
        remedy = "Give the container CAP_SYS_ADMIN and a seccomp profile that allows unshare and mount"
    else:
        remedy = (
            "Allow user namespaces to ordinary users: sysctl user.max_user_namespaces, "
            "kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns"
        )
    return MissingLayer(Layer.NAMESPACES, f"New namespaces are refused ({problem}). {remedy}.")


def _probe_landlock() -> MissingLayer | None:
    abi = landlock_abi()
    if abi >= MINIMUM_ABI:
        return None
    found = f"version {abi} is there" if abi else "there is none, or landlockpy is not installed"
    return MissingLayer(
        Layer.LANDLOCK,
        f"Landlock {MINIMUM_ABI} or newer is needed and {found}. "
        "Use Linux 6.12 or newer with landlock among its security modules, and pip install landlockpy.",
    )


def _probe_seccomp() -> MissingLayer | None:
    if seccomp_is_available():
        return None
    return MissingLayer(
        Layer.SECCOMP,
        "System calls cannot be filtered: install libseccomp (sudo apt-get install libseccomp2) "
        "and pip install pyseccomp.",
    )


def _probe_own_uid(tier: Isolation) -> tuple[MissingLayer, ...]:
    if os.geteuid() != 0 or gives_own_uid(tier, Path(tempfile.gettempdir())):
        return ()
    return (
        MissingLayer(
            Layer.OWN_UID,
            "Workers run as root without capabilities, because users cannot be changed, or Python lies where another "
            "user cannot read it. Run as an ordinary user, or install Python outside of root's home.",
        ),
    )


def _enter_whole(tier: Isolation) -> None:
    folder = Path(tempfile.mkdtemp(prefix="gym-kernel-probe-"))
    try:
        scratch = folder / "scratch"
        scratch.mkdir(mode=0o700)
        if gives_own_uid(tier, folder):
            folder.chmod(0o711)
            uid = uid_for_worker(os.getpid(), 0)
            os.chown(scratch, uid, uid)
        parent = os.getpid()
        if tier is Isolation.FULL:
            open_pid_namespace()
            fork_init()
            parent = 0
        problem = _in_a_fork(lambda: _live_in(tier, scratch, parent), same_group=True)
        if problem is not None:
            raise OSError(problem)
    finally:
        remove_folder(folder)


def _live_in(tier: Isolation, scratch: Path, parent: int) -> None:
    enter_fence(tier, scratch, parent_pid=parent)
    # Python's own files, programs and temporary files must still be within reach.
    Path(os.__file__).read_bytes()
    with tempfile.TemporaryFile(dir=scratch) as file:
        file.write(b"x")
    subprocess.run(["/bin/sh", "-c", "exit 0"], check=True)


def _in_a_fork(action: Callable[[], None], *, same_group: bool = False) -> str | None:
    """Run something in a child; returns what went wrong, or ``None``."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        answer = "it ended without a word"
        try:
            if not same_group:
                os.setpgid(0, 0)
            action()
            answer = ""
        except BaseException as error:
            answer = str(error) or type(error).__name__
        finally:
            os.write(write_end, b"." + answer.encode("utf-8", "backslashreplace")[:_ANSWER_BYTES])
            os._exit(0)
    os.close(write_end)
    try:
        poller = select.poll()
        poller.register(read_end, select.POLLIN)
        heard = os.read(read_end, _ANSWER_BYTES + 1) if poller.poll(int(_ANSWER_S * 1000)) else b""
    finally:
        os.close(read_end)
        if not same_group:
            kill_group(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if not heard:
        return "the process that tried it was stopped by the system"
    return heard[1:].decode() or None
