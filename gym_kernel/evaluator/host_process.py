"""Starting a host from the caller's side, and ending it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from gym_kernel.errors import EvaluatorError, IsolationUnavailable
from gym_kernel.evaluator.compile_slots import COMPILE_SLOTS, compile_slots
from gym_kernel.evaluator.framing import Channel, ChannelClosed, ChannelTimeout
from gym_kernel.evaluator.messages import Failure, FailureCause, Greeting, HostToCaller

__all__ = ["HostProcess"]

_HOST_MODULE = "gym_kernel.evaluator.host"
_START_S = 180.0
_STOP_S = 5.0
_LOG_TAIL_BYTES = 2_000

# What a host, its compilers and its GPU driver may need; credentials and the like stay with the caller.
_KEPT = (
    "CC", "CPATH", "CPLUS_INCLUDE_PATH", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CXX",
    "GYM_KERNEL_CACHE", COMPILE_SLOTS, "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LIBRARY_PATH", "LOGNAME",
    "OMP_NUM_THREADS", "PATH", "PYTHONPATH", "TMPDIR", "TORCH_CUDA_ARCH_LIST", "TRITON_LIBCUDA_PATH",
    "TRITON_PTXAS_PATH", "USER", "VIRTUAL_ENV", "XDG_CACHE_HOME",
)  # fmt: skip
_KEPT_PREFIXES = ("NVIDIA_", "OPENBLAS_", "NVPL_")


class HostProcess:
    """A running host, greeted and ready.

    Args:
        device: Device id; a CPU host interprets Triton, a CUDA host compiles it.
        isolation: Tier to demand, or ``"auto"``.
        standby: Workers kept warm.

    Raises:
        ConfigurationError: The number of compile slots in the environment is none.
        IsolationUnavailable: The tier cannot be had.
        EvaluatorError: The host did not come up.
    """

    def __init__(self, device: str, isolation: str, standby: int) -> None:
        # The judge reads it; what is wrong with it is said here, where somebody listens.
        compile_slots()
        ours, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile(prefix="gym-kernel-log-")  # noqa: SIM115
        command = [
            sys.executable, "-m", _HOST_MODULE,
            "--socket-fd", str(theirs.fileno()), "--caller-pid", str(os.getpid()),
            "--isolation", isolation, "--standby", str(standby),
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(theirs.fileno(),),
            env=_environment(device),
            # Ctrl-C in the caller's terminal is the caller's; it decides when the host goes.
            start_new_session=True,
        )
        theirs.close()
        self.channel: Channel[HostToCaller] = Channel(ours, HostToCaller, max_frame_bytes=8 << 20)
        try:
            self.isolation = self._greet()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the host and with it every judge and worker. Safe to call twice."""
        self.channel.close()
        try:
            # The closed socket tells it to clean up and go.
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()

    def last_words(self) -> str:
        """End of what the host wrote to its standard streams."""
        if self._log.closed:
            return ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _LOG_TAIL_BYTES))
        return self._log.read().decode("utf-8", "backslashreplace").strip()

    def _greet(self) -> str:
        try:
            first = self.channel.receive(_START_S)
        except (ChannelClosed, ChannelTimeout) as error:
            raise EvaluatorError(
                f"The evaluator's host did not start: {error} Run `gym-kernel doctor`. {self.last_words()}"
            ) from error
        if isinstance(first, Failure) and first.cause is FailureCause.TASK:
            raise IsolationUnavailable(first.message)
        if not isinstance(first, Greeting):
            detail = first.message if isinstance(first, Failure) else type(first).__name__
            raise EvaluatorError(f"The evaluator's host did not start; run `gym-kernel doctor`. {detail}")
        return first.isolation


def _environment(device: str) -> dict[str, str]:
    environment = {
        name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    # An environment that was not activated still has its own ninja.
    environment["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), environment.get("PATH", os.defpath)]
    )
    package_parent = str(Path(__file__).resolve().parents[2])
    environment["PYTHONPATH"] = os.pathsep.join(
        part for part in (package_parent, environment.get("PYTHONPATH", "")) if part
    )
    environment["PYTHONSAFEPATH"] = "1"
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["OPENBLAS_NUM_THREADS"] = "1"
    # Importing torch's extension builder would otherwise initialise CUDA, and no fork could use it.
    environment["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    # The profiler's own chatter is no output of a submission.
    environment["KINETO_LOG_LEVEL"] = "99"
    if device == "cpu":
        # Idle threads of the judge's parallel loops must not spin for long on the cores that the worker is timed on.
        environment["GOMP_SPINCOUNT"] = "20000"
        environment["TRITON_INTERPRET"] = "1"
        environment["CUDA_VISIBLE_DEVICES"] = ""
    return environment
