"""Runs naive checkers on candidates, each in a process tree of its own under a time limit.

The trees are forked from one server that has torch and Triton imported::

    test -> server -> supervisor (holds what a naive parent process would hold) -> checker with the candidate
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pickle
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from naive_checkers import CHECKERS, LIMIT_S, TIMED, Finding, hear_worker, pickled_result, worker_reports
from naive_problem import Problem

__all__ = ["HARM_LIMIT_S", "NaiveCheckers"]

ROOT = Path(__file__).parents[1]
# Of a candidate whose harm may be that it never ends, and of the supervisor beyond its candidates' limits.
HARM_LIMIT_S = 5.0
_SUPERVISOR_S = 3.0
_RESULT_FD = 9
_PR_SET_PTRACER = 0x59616D61


def _supervise(checker: str, task: str, path: Path, scratch: Path, limit_s: float) -> Finding:
    """Run a checker in a child, and conclude what a naive parent would."""
    import torch

    problem = Problem(task, path)
    ours, theirs = socket.socketpair()
    memory = tuple(torch.empty_like(problem.official(0)).share_memory_() for _ in range(2))
    pipe_r, pipe_w = os.pipe()
    printed = scratch / "stdout"
    child = os.fork()
    if child == 0:
        ours.close()
        os.close(pipe_r)
        _be_the_checker(checker, problem, theirs, memory, pipe_w, printed, scratch)
    theirs.close()
    os.close(pipe_w)
    if checker == "worker_reports":
        finding = hear_worker(problem, ours, memory)
        _end(child, 0.0)
        return finding
    said = b""
    deadline = time.monotonic() + limit_s
    while (not _has_ended(child) and time.monotonic() < deadline) or select.select([pipe_r], [], [], 0)[0]:
        if not select.select([pipe_r], [], [], 0.02)[0]:
            continue
        chunk = os.read(pipe_r, 1 << 16)
        if not chunk:
            break
        said += chunk
        if len(said) >= 1 << 20:
            break
    status = _end(child, max(deadline - time.monotonic(), 0.5))
    if checker == "exit_code":
        return Finding(status == 0)
    if checker == "stdout_marker":
        return Finding("RESULT: PASSED" in printed.read_text(errors="replace"))
    if checker == "unfenced":
        return Finding(False, harm=_harm(status, printed, scratch))
    if checker == "pickled_result":
        with contextlib.suppress(Exception):
            return Finding(bool(pickle.loads(said)["passed"]))
        return Finding(False)
    with contextlib.suppress(ValueError, TypeError):
        return Finding(**json.loads(said))
    return Finding(False)


def _be_the_checker(
    checker: str,
    problem: Problem,
    sock: socket.socket,
    memory: tuple[Any, Any],
    pipe: int,
    printed: Path,
    scratch: Path,
) -> None:
    status = 1
    try:
        os.close(_RESULT_FD)
        out = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.close(out)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        os.chdir(scratch)
        import torch

        with torch.no_grad():
            if checker == "pickled_result":
                pickled_result(problem, pipe)
            elif checker == "worker_reports":
                worker_reports(problem, sock, memory)
            else:
                finding = CHECKERS[checker](problem)
                if isinstance(finding, Finding):
                    os.write(pipe, json.dumps(asdict(finding)).encode())
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        import atexit

        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        os._exit(status)


def _has_ended(child: int) -> bool:
    """Whether a child waits to be reaped; what it has forked may hold its pipe open for long."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(child: int, limit_s: float) -> int | None:
    """Wait for a child and kill it in the end; its exit code, or None where it had to be killed or crashed."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _harm(status: int | None, printed: Path, scratch: Path) -> str:
    import resource

    from gym_kernel.evaluator.processes import children_of

    if status is None:
        return "it never ended"
    if survivors := children_of(os.getpid()):
        return f"{len(survivors)} processes outlived it"
    if printed.stat().st_size > 1 << 20:
        return f"it printed {printed.stat().st_size} bytes"
    if left := [p.name for p in Path(tempfile.gettempdir()).iterdir()]:
        return f"it left {len(left)} files"
    peak_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return f"it took {peak_kb} KiB of memory" if peak_kb > 1_500_000 else ""


def _serve() -> None:
    """Answer one request a line: fork, wait, clean up."""
    import torch
    import triton
    import triton.language
    import triton.runtime.interpreter  # noqa: F401

    from gym_kernel.evaluator.processes import become_subreaper, children_of

    torch.set_num_threads(1)
    become_subreaper()
    for line in sys.stdin:
        request = json.loads(line)
        scratch = Path(tempfile.mkdtemp(prefix="naive-"))
        (scratch / "tmp").mkdir()
        (scratch / "work").mkdir()
        result_r, result_w = os.pipe()
        supervisor = os.fork()
        if supervisor == 0:
            os.close(result_r)
            _be_the_supervisor(request, scratch, result_w)
        os.close(result_w)
        limit_s = request["submissions"] * request["limit_s"] + _SUPERVISOR_S
        finding = _wait_for_supervisor(supervisor, result_r, limit_s)
        for _ in range(50):
            if not (strays := children_of(os.getpid())):
                break
            for pid in strays:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
        shutil.rmtree(scratch, ignore_errors=True)
        print(json.dumps(asdict(finding)), flush=True)


def _be_the_supervisor(request: dict[str, Any], scratch: Path, result: int) -> None:
    from gym_kernel.evaluator.processes import become_subreaper, close_fds_except

    try:
        os.setsid()
        become_subreaper()
        # Anyone may look into this process, as many set-ups allow.
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.dup2(result, _RESULT_FD)
        close_fds_except({0, 1, 2, _RESULT_FD})
        os.environ["TMPDIR"] = str(scratch / "tmp")
        os.environ["HOME"] = str(scratch / "work")
        tempfile.tempdir = None
        path = scratch / "work" / "submission.py"
        path.write_text(request["code"])
        for _ in range(int(request["submissions"])):
            finding = _supervise(
                request["checker"], request["task"], path, scratch / "work", request["limit_s"]
            )
        os.write(_RESULT_FD, json.dumps(asdict(finding)).encode())
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(0)


def _wait_for_supervisor(supervisor: int, result: int, limit_s: float) -> Finding:
    deadline = time.monotonic() + limit_s
    said = b""
    while select.select([result], [], [], max(deadline - time.monotonic(), 0))[0]:
        chunk = os.read(result, 1 << 16)
        if not chunk:
            break
        said += chunk
    os.close(result)
    status = _end(supervisor, 1.0)
    if status != 0:
        return Finding(False, harm="its parent did not survive it")
    with contextlib.suppress(ValueError, TypeError):
        return Finding(**json.loads(said))
    return Finding(False)


class NaiveCheckers:
    """The test's end of the server, which starts with the first question."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None
        self._honest_us: dict[tuple[str, str], float] = {}

    def check(
        self, checker: str, task: str, code: str, submissions: int = 1, limit_s: float = LIMIT_S
    ) -> Finding:
        """Have a checker judge a candidate."""
        request = {
            "checker": checker,
            "task": task,
            "code": code,
            "submissions": submissions,
            "limit_s": limit_s,
        }
        server = self._running()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        return Finding(**json.loads(server.stdout.readline()))

    def is_fooled(
        self,
        checker: str,
        task: str,
        code: str,
        *,
        takes_us: float | None = None,
        submissions: int = 1,
        limit_s: float = LIMIT_S,
    ) -> tuple[bool, Finding]:
        """Whether a checker takes a candidate for better than it is, or comes to harm by it."""
        finding = self.check(checker, task, code, submissions, limit_s)
        if checker not in TIMED or not finding.passed:
            return finding.passed or bool(finding.harm), finding
        assert finding.time_us is not None
        if takes_us is not None:
            return finding.time_us < 0.95 * takes_us, finding
        if checker == "worker_reports":
            return True, finding
        # Credited with a time in which nobody can do it.
        return finding.time_us < 0.5 * self.honest_us(checker, task), finding

    def honest_us(self, checker: str, task: str) -> float:
        """What a timed checker measures for the honest example kernel."""
        key = (checker, task)
        if key not in self._honest_us:
            finding = self.check(checker, task, (ROOT / "examples" / "kernels" / f"{task}.py").read_text())
            assert finding.passed, f"{checker} refuses the honest kernel of {task}."
            assert finding.time_us is not None
            self._honest_us[key] = finding.time_us
        return self._honest_us[key]

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            assert self._server.stdin is not None
            self._server.stdin.close()
            try:
                self._server.wait(10)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            self._server = None

    def _running(self) -> subprocess.Popen[str]:
        if self._server is None or self._server.poll() is not None:
            environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
            environment["PYTHONPATH"] = str(ROOT)
            command = [sys.executable, __file__]
            self._server = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
            )
        return self._server


if __name__ == "__main__":
    _serve()
