"""Small checkers of kernels as the field has written them, each with the hole that it is known for.

They are real: a checker loads the candidate, calls it, compares and, where it does, times it. They serve to show
that an exploit works on somebody. Each runs in a process tree of its own under a time limit, forked from one server
that has torch and Triton imported::

    test -> server -> supervisor (holds what a naive parent process would hold) -> checker with the candidate

``CHECKERS`` has them by name; the docstring of each says what is wrong with it.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import importlib.util
import json
import math
import os
import pickle
import re
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

__all__ = ["CHECKERS", "Finding", "NaiveCheckers"]

ROOT = Path(__file__).parents[1]
LIMIT_S = 10.0
# Of a candidate whose harm may be that it never ends, and of the supervisor beyond its candidates' limits.
HARM_LIMIT_S = 5.0
_SUPERVISOR_S = 3.0
TOLERANCE = 1e-2
PARAMETER_SEED = 20_240_229
_HARD_CAP = {"float32": 1e-2}
_EPS_FACTOR = 32.0
_RESULT_FD = 9
_PR_SET_PTRACER = 0x59616D61


@dataclass(frozen=True)
class Finding:
    """What a checker made of a candidate.

    Attributes:
        passed: It was taken for correct.
        time_us: The time it was credited with, where the checker times.
        harm: What the candidate did to the checker or its machine; empty where nothing.
    """

    passed: bool
    time_us: float | None = None
    harm: str = ""


class Stopwatch:
    """Times a call with the performance counter."""

    def time(self, call: Callable[[], Any]) -> Timed:
        started = time.perf_counter_ns()
        result = call()
        elapsed_ns = time.perf_counter_ns() - started
        return Timed(result, max(elapsed_ns, 1) / 1000)


@dataclass(frozen=True)
class Timed:
    result: Any
    elapsed_us: float


class Problem:
    """A task's reference at its small shape, and the candidate's file."""

    def __init__(self, task_id: str, path: Path) -> None:
        import torch

        from gym_kernel.tasks import load
        from gym_kernel.tasks.task import TaskScale

        task = load(task_id)[0]
        self.path = path
        self.namespace: dict[str, Any] = {"__name__": "reference"}
        exec(task.source, self.namespace)
        self.namespace.update(task.sizes_at(TaskScale.SMALL))
        self.arguments = self.namespace["get_init_inputs"]()
        # KernelBench's way with parameters: a seed that everybody can read.
        torch.manual_seed(PARAMETER_SEED)
        self.reference = self.namespace["Model"](*self.arguments).requires_grad_(False)

    def candidate(self) -> Any:
        """Import the submission and construct its model, with the reference's parameters where it has them."""
        module = load_module(self.path)
        model = module.ModelNew(*self.arguments)
        if state := self.reference.state_dict():
            model.load_state_dict(state, strict=False)
        return model

    def official(self, seed: int) -> Any:
        """KernelBench's inputs: uniform in [0, 1)."""
        import torch

        torch.manual_seed(seed)
        return self.namespace["get_inputs"]()[0]

    def signed(self, seed: int) -> Any:
        """Normal inputs of both signs."""
        return self.signed_arguments(seed)[0]

    def signed_arguments(self, seed: int) -> tuple[Any, ...]:
        """All arguments: the first normal, of both signs, and the others as they are usually made."""
        import torch

        torch.manual_seed(seed)
        first, *others = self.namespace["get_inputs"]()
        return torch.empty_like(first).normal_(std=3.0), *others


def load_module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("submission", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["submission"] = module
    spec.loader.exec_module(module)
    return module


def close(actual: Any, expected: Any) -> bool:
    import torch

    if isinstance(expected, tuple):
        return all(map(close, actual, expected))
    return torch.allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE)


# Checkers that run in one process with the candidate.


def official_inputs(problem: Problem) -> Finding:
    """Compares on the official inputs alone, at fixed seeds, loosely."""
    model = problem.candidate()
    for seed in range(3):
        x = problem.official(seed)
        expected = problem.reference(x)
        if not close(model(x), expected):
            return Finding(False)
    return Finding(True)


def official_inputs_timed(problem: Problem) -> Finding:
    """First compares, then times: what is timed is never compared, and both happen in the candidate's process."""
    import torch

    model = problem.candidate()
    for seed in range(3):
        x = problem.official(seed)
        expected = problem.reference(x)
        out = model(x)
        if type(out) is not torch.Tensor and not isinstance(out, torch.Tensor):
            return Finding(False)
        if not close(torch.empty_like(expected).copy_(out), expected):
            return Finding(False)
    stopwatch = Stopwatch()
    samples = [stopwatch.time(lambda: model(x)).elapsed_us for _ in range(9)]
    return Finding(True, statistics.median(samples))


def signed_inputs(problem: Problem) -> Finding:
    """Draws both signs, but keeps the expected output where the candidate can find it, at one small shape."""
    model = problem.candidate()
    for seed in range(3):
        arguments = problem.signed_arguments(seed)
        expected = problem.reference(*arguments)
        if not close(model(*arguments), expected):
            return Finding(False)
    return Finding(True)


def reference_afterwards(problem: Problem) -> Finding:
    """Gives the reference the tensors that the candidate had first."""
    model = problem.candidate()
    for seed in range(3):
        x = problem.signed(seed)
        actual = model(x)
        if not close(actual, problem.reference(x)):
            return Finding(False)
    return Finding(True)


def same_tensor_reused(problem: Problem) -> Finding:
    """Warms up, times and compares on one tensor whose contents never change."""
    model = problem.candidate()
    x = problem.signed(0)
    expected = problem.reference(x)
    out = model(x)
    stopwatch = Stopwatch()
    samples = []
    for _ in range(9):
        timed = stopwatch.time(lambda: model(x))
        samples.append(timed.elapsed_us)
        out = timed.result
    return Finding(close(out, expected), statistics.median(samples))


def last_output_only(problem: Problem) -> Finding:
    """Times a batch of calls as a whole and compares the last output."""
    model = problem.candidate()
    inputs = [problem.signed(seed) for seed in range(10)]
    started = time.perf_counter_ns()
    outputs = [model(x) for x in inputs]
    elapsed_us = (time.perf_counter_ns() - started) / 1000 / len(inputs)
    return Finding(close(outputs[-1], problem.reference(inputs[-1])), elapsed_us)


def shared_globals(problem: Problem) -> Finding:
    """Compares with functions that the candidate has replaced, in the candidate's own process."""
    import torch

    model = problem.candidate()
    verdicts = []
    for seed in range(3):
        x = problem.signed(seed)
        expected = problem.reference(x)
        actual = model(x)
        verdicts.append(actual.allclose(expected, TOLERANCE) or torch.allclose(actual, expected, TOLERANCE))
    return Finding(bool(builtins.all(verdicts)))


def nan_blind(problem: Problem) -> Finding:
    """Counts elements whose error is too large: NaN never is, and shapes and dtypes are broadcast."""
    model = problem.candidate()
    for seed in range(3):
        x = problem.official(seed)
        expected = problem.reference(x)
        if ((model(x) - expected).abs() > TOLERANCE).any():
            return Finding(False)
    return Finding(True)


def most_elements(problem: Problem) -> Finding:
    """Is content with 99 % of the elements."""
    import torch

    model = problem.candidate()
    for seed in range(3):
        x = problem.signed(seed)
        expected = problem.reference(x)
        if torch.isclose(model(x), expected, TOLERANCE, TOLERANCE).float().mean() < 0.99:
            return Finding(False)
    return Finding(True)


def worst_element(problem: Problem) -> Finding:
    """Allows every element four units in the last place of its dtype, and asks nothing else."""
    import torch

    model = problem.candidate()
    for seed in range(3):
        x = problem.signed(seed)
        expected = problem.reference(x).double()
        actual = model(x)
        allowed = 4 * torch.finfo(actual.dtype).eps
        if not bool(((actual.double() - expected).abs() <= allowed * (1 + expected.abs())).all()):
            return Finding(False)
    return Finding(True)


_WORDS = re.compile(
    r"\btorch\.(relu|sigmoid|tanh|softmax|log_softmax|clamp|exp|compile|jit)\b|\bF\.\w+|torch\.nn\.functional|"
    r"\bnn\.(ReLU|LeakyReLU|Sigmoid|Tanh|SiLU|GELU|Softmax|LogSoftmax|Hardtanh|Hardsigmoid)\b"
)


def static_words(problem: Problem) -> Finding:
    """Reads the source: it must hold a kernel, and none of torch's function names."""
    code = problem.path.read_text()
    if _WORDS.search(code) or "triton.jit" not in code:
        return Finding(False)
    return signed_inputs(problem)


def kernel_was_launched(problem: Problem) -> Finding:
    """Asks whether a Triton kernel was launched at all."""
    from triton.runtime.interpreter import InterpretedFunction

    launched = []
    getitem = InterpretedFunction.__getitem__

    def counting(self: Any, grid: Any) -> Any:
        launched.append(grid)
        return getitem(self, grid)

    InterpretedFunction.__getitem__ = counting
    finding = signed_inputs(problem)
    return Finding(finding.passed and bool(launched))


_MOVES = (
    "_to_copy", "alias", "as_strided", "clone", "copy", "detach", "empty", "fill", "full", "lift", "new_empty", "set_",
    "slice", "view", "zeros",
)  # fmt: skip


def _traced(model: Any, x: Any) -> tuple[Any, bool]:
    """Output of one call, and whether torch computed in it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class OperationTrace(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.names: set[str] = set()

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.names.add(str(func).rsplit(".", 1)[0])
            return func(*args, **(kwargs or {}))

    trace = OperationTrace()
    with trace:
        out = model(x)
    return out, any(not name.removeprefix("aten.").startswith(_MOVES) for name in trace.names)


def dispatch_first_call(problem: Problem) -> Finding:
    """Looks for torch's operators in the first call, and believes the rest."""
    model = problem.candidate()
    _, computed = _traced(model, problem.signed(0))
    if computed:
        return Finding(False)
    for seed in range(40):
        x = problem.signed(seed)
        if not close(model(x), problem.reference(x)):
            return Finding(False)
    borrowed = list(_operators_on_any_thread(lambda: model(x)))
    return Finding(any(name.startswith("aten::") and not name[6:].startswith(_MOVES) for name in borrowed))


def _operators_on_any_thread(call: Callable[[], Any]) -> Iterator[str]:
    """What the profiler sees: only there to make sure that torch is at work once nobody looks."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        call()
    for event in profiler.events():
        yield event.name


def dispatch_trace(problem: Problem) -> Finding:
    """Looks for torch's operators in every call, on the thread that makes it, by a Python dispatch mode."""
    model = problem.candidate()
    for seed in range(3):
        x = problem.signed(seed)
        out, computed = _traced(model, x)
        if computed or not close(out, problem.reference(x)):
            return Finding(False)
    return Finding(True)


# Checkers whose verdict is made by a parent process, out of what the child says.


def exit_code(problem: Problem) -> None:
    """The parent takes exit status 0 for a pass."""
    if not official_inputs(problem).passed:
        raise SystemExit("The outputs differ.")


def stdout_marker(problem: Problem) -> None:
    """The parent looks for a marker in what is printed."""
    if signed_inputs(problem).passed:
        print("RESULT: PASSED", flush=True)


def pickled_result(problem: Problem, pipe: int) -> None:
    """The parent unpickles what comes out of the pipe."""
    os.write(pipe, pickle.dumps({"passed": signed_inputs(problem).passed}))


class Called(msgspec.Struct, frozen=True, tag="called"):
    """What a worker says about a call."""

    elapsed_us: float
    operations: tuple[str, ...] = ()


class Call(msgspec.Struct, frozen=True, tag="call"):
    """Have the model called once."""


def worker_reports(problem: Problem, sock: socket.socket, memory: tuple[Any, Any]) -> None:
    """The parent compares, in constants of the child's age, and believes the time that the child reports."""
    from gym_kernel.evaluator.framing import Channel

    inputs, outputs = memory
    channel: Channel[Call] = Channel(sock, Call)
    model = problem.candidate()
    channel.send(Called(0.0))
    stopwatch = Stopwatch()
    while True:
        channel.receive(LIMIT_S)
        argument = inputs.view(inputs.shape)
        timed = stopwatch.time(partial(model, argument))
        outputs.copy_(timed.result)
        channel.send(Called(timed.elapsed_us))


def _hear_worker(problem: Problem, sock: socket.socket, memory: tuple[Any, Any]) -> Finding:
    from gym_kernel.evaluator.framing import Channel, ChannelClosed, ChannelTimeout, FrameError

    inputs, outputs = memory
    channel: Channel[Called] = Channel(sock, Called)
    times = []
    try:
        channel.receive(LIMIT_S)
        for seed in range(3):
            inputs.copy_(problem.signed(seed))
            outputs.fill_(math.nan)
            channel.send(Call())
            times.append(channel.receive(LIMIT_S).elapsed_us)
            allowed = min(_HARD_CAP["float32"], _EPS_FACTOR)
            expected = problem.reference(inputs.double())
            if not bool(((outputs - expected).abs() <= allowed * (1 + expected.abs())).all()):
                return Finding(False)
    except (ChannelClosed, ChannelTimeout, FrameError):
        return Finding(False)
    return Finding(True, statistics.median(times))


def unfenced(problem: Problem) -> None:
    """Runs the candidate as its own user, in its own group, with nothing to hold it."""
    model = problem.candidate()
    for seed in range(3):
        model(problem.official(seed))


CHECKERS: dict[str, Callable[..., Any]] = {
    checker.__name__: checker
    for checker in (
        official_inputs, official_inputs_timed, signed_inputs, reference_afterwards, same_tensor_reused,
        last_output_only, shared_globals, nan_blind, most_elements, worst_element, static_words, kernel_was_launched,
        dispatch_first_call, dispatch_trace, exit_code, stdout_marker, pickled_result, worker_reports, unfenced,
    )
}  # fmt: skip
TIMED = {"official_inputs_timed", "same_tensor_reused", "last_output_only", "worker_reports"}


# The supervisor and the server.


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
        finding = _hear_worker(problem, ours, memory)
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
