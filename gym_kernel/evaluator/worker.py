"""The worker: a single-use process in which one submission is loaded and called.

    host --fork--> worker: enter the fence, make the device context, Ready
                   judge:  Load  ->  Loaded | Failed
                   judge:  Call  ->  Called | Failed      (as often as the judge likes)

It is killed by its host afterwards; it never ends well by itself.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gym_kernel.evaluator.arena import Arena, map_arena, view
from gym_kernel.evaluator.candidate import Candidate, CandidateError
from gym_kernel.evaluator.diagnostics import bounded
from gym_kernel.evaluator.fence import Isolation, enter_fence
from gym_kernel.evaluator.framing import Channel, ChannelClosed
from gym_kernel.evaluator.own_work import OperationTrace
from gym_kernel.evaluator.precompile import precompile
from gym_kernel.evaluator.stopwatch import Stopwatch, create_stopwatch
from gym_kernel.evaluator.worker_messages import (
    Argument,
    Attach,
    Attached,
    Call,
    Called,
    Failed,
    FailureKind,
    Load,
    Loaded,
    Order,
    Ready,
)

__all__ = ["run_worker"]

_DETAIL_CHARS = 6_000
_MESSAGE_CHARS = 600


def run_worker(sock: socket.socket, output_fd: int, scratch: Path, device_id: str, tier: Isolation) -> None:
    """Serve one submission; never returns normally.

    Args:
        sock: Connection to the judge.
        output_fd: Where the submission's stdout and stderr go.
        scratch: This worker's own folder.
        device_id: ``"cpu"`` or ``"cuda:0"``.
        tier: Isolation tier to enter.
    """
    started = time.monotonic()
    _redirect_output(output_fd)
    enter_fence(tier, scratch)
    tempfile.tempdir = None  # chosen again from TMPDIR
    device = torch.device(device_id)
    _wake_device(device)
    channel: Channel[Order] = Channel(sock, Order, max_frame_bytes=16 << 20)
    channel.send(Ready(tier.value, time.monotonic() - started))
    try:
        _serve(channel, device, scratch)
    except ChannelClosed:
        os._exit(0)


def _serve(channel: Channel[Order], device: torch.device, scratch: Path) -> None:
    order = channel.receive()
    assert isinstance(order, Load), "The first order is always a Load."
    try:
        bench = _Bench(order, device, scratch)
        channel.send(Loaded())
        while True:
            order = channel.receive()
            if isinstance(order, Attach):
                bench.attach(order, channel.take_fds(len(order.arenas)))
                channel.send(Attached())
            elif isinstance(order, Call):
                channel.send(bench.call(order))
    except CandidateError as error:
        message = bounded(error.message, _MESSAGE_CHARS)
        channel.send(Failed(error.kind, message, bounded(error.detail, _DETAIL_CHARS)))
    except BaseException as error:
        # Only the submission's interference, or the device it has broken, can bring the harness down.
        text = bounded(f"{type(error).__name__}: {error}", _MESSAGE_CHARS)
        channel.send(Failed(FailureKind.RUNTIME, text))


class _Bench:
    def __init__(self, load: Load, device: torch.device, scratch: Path) -> None:
        self._load = load
        self._device = device
        self._inputs: list[Arena] = []
        self._output: Arena | None = None
        self._stopwatch: Stopwatch = create_stopwatch(device)
        self._candidate = Candidate(load.code, scratch, load.init_arguments, device)
        precompile(self._candidate, load.arguments, device)

    def attach(self, order: Attach, fds: tuple[int, ...]) -> None:
        arenas = [
            map_arena(self._device, spec.size_bytes, fd, writable=spec.writable)
            for spec, fd in zip(order.arenas, fds, strict=True)
        ]
        self._inputs = arenas[: order.input_arenas]
        self._output = arenas[order.input_arenas]
        if self._load.parameters:
            parameters = arenas[order.input_arenas + 1].bytes
            self._candidate.load_parameters({p.name: view(parameters, p.slot) for p in self._load.parameters})

    def call(self, order: Call) -> Called:
        arguments = self._arguments(self._inputs[order.arena])
        with torch.no_grad():
            if order.trace:
                trace = OperationTrace()
                timed = self._time(lambda: self._traced(trace, arguments))
                names = tuple(sorted(trace.names))[:64]
            else:
                timed = self._time(lambda: self._candidate.forward(arguments))
                names = ()
            self._hand_over(timed.result)
        return Called(timed.elapsed_us, names)

    def _time(self, call: Callable[[], Any]) -> Any:
        try:
            return self._stopwatch.time(call)
        except CandidateError:
            raise
        except RuntimeError as error:
            # A kernel's fault surfaces at the synchronisation, outside the submission's own frames.
            raise CandidateError(FailureKind.RUNTIME, _device_fault(error)) from error

    def _traced(self, trace: OperationTrace, arguments: list[Any]) -> Any:
        with trace:
            return self._candidate.forward(arguments)

    def _hand_over(self, result: Any) -> None:
        outputs = self._candidate.outputs(result, self._load.outputs, self._device)
        assert self._output is not None, "Memory is attached before the first call."
        for slot, tensor in zip(self._load.outputs, outputs, strict=True):
            view(self._output.bytes, slot).copy_(tensor)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _arguments(self, arena: Arena) -> list[Any]:
        return [_argument(arena, argument) for argument in self._load.arguments]


def _argument(arena: Arena, argument: Argument) -> Any:
    return argument.value if argument.slot is None else view(arena.bytes, argument.slot)


def _device_fault(error: RuntimeError) -> str:
    first = str(error).strip().splitlines()[0] if str(error).strip() else "no message"
    if "illegal memory access" in first or "misaligned" in first:
        return (
            f"{first}. The kernel read or wrote outside its tensors, or wrote to an input "
            "(inputs are mapped read-only)."
        )
    return first


def _wake_device(device: torch.device) -> None:
    if device.type == "cpu":
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        return
    torch.cuda.set_device(device)
    torch.zeros(1, device=device)
    torch.cuda.synchronize(device)
    import triton

    # Builds or loads the driver's helper module now, and not while a submission waits.
    triton.runtime.driver.active.get_current_device()


def _redirect_output(output_fd: int) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    os.close(output_fd)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
