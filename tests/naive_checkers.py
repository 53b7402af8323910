"""Small checkers of kernels as the field has written them, each with the hole that it is known for.

They are real: a checker loads the candidate, calls it, compares and, where it does, times it. They serve to show
that an exploit works on somebody. Each runs in a process tree of its own under a time limit; ``naive_server.py`` sees
to that.

``CHECKERS`` has them by name; the docstring of each says what is wrong with it.
"""

from __future__ import annotations

import builtins
import math
import os
import pickle
import re
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from naive_problem import Problem

__all__ = ["CHECKERS", "LIMIT_S", "TIMED", "Finding", "hear_worker", "pickled_result", "worker_reports"]

LIMIT_S = 10.0
TOLERANCE = 1e-2
_HARD_CAP = {"float32": 1e-2}
_EPS_FACTOR = 32.0


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


def hear_worker(problem: Problem, sock: socket.socket, memory: tuple[Any, Any]) -> Finding:
    """The parent's side of :func:`worker_reports`."""
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
