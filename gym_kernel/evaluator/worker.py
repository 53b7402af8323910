"""The worker: a single-use process in which one submission is loaded and called.

    host --fork--> worker: enter the fence, Fenced
                   judge:  Wake     ->  Awake, Ready         (the device context is made, then the tools)
                   judge:  Load     ->  Received, Loaded | Failed
                   judge:  Attach   ->  Attached | Failed
                   judge:  Call     ->  Called, Evidence | Failed      (as often as the judge likes)

It is killed by its host afterwards; it never ends well by itself.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gym_kernel.evaluator.arena import Arena, map_arena, view
from gym_kernel.evaluator.canary import run_canary
from gym_kernel.evaluator.candidate import (
    Candidate,
    CandidateError,
    is_out_of_memory,
    out_of_memory_text,
)
from gym_kernel.evaluator.diagnostics import bounded
from gym_kernel.evaluator.extension_build import use_fast_builds
from gym_kernel.evaluator.fence import Isolation, enter_fence
from gym_kernel.evaluator.fence_limits import FenceLimits
from gym_kernel.evaluator.framing import Channel, ChannelClosed, sendable_text
from gym_kernel.evaluator.interpreter_driver import (
    let_the_interpreter_autotune,
    let_the_interpreter_multiply_bfloat16,
)
from gym_kernel.evaluator.precompile import precompile
from gym_kernel.evaluator.stopwatch import Stopwatch, TimedCall, create_stopwatch
from gym_kernel.evaluator.work_evidence import Witness, own_libraries
from gym_kernel.evaluator.worker_messages import (
    Argument,
    Attach,
    Attached,
    Awake,
    Call,
    Called,
    Claim,
    Evidence,
    Failed,
    FailureKind,
    Fenced,
    Idle,
    Load,
    Loaded,
    Order,
    Ready,
    Received,
    Wake,
)

__all__ = ["run_worker"]

# Bound now, before a submission can put its own in its place.
_copy = torch.Tensor.copy_
_contiguous = torch.Tensor.contiguous
_is_contiguous = torch.Tensor.is_contiguous
_Tensor = torch.Tensor

_DETAIL_CHARS = 6_000
_MESSAGE_CHARS = 600


def run_worker(
    sock: socket.socket,
    output_fd: int,
    scratch: Path,
    device_id: str,
    tier: Isolation,
    limits: FenceLimits = FenceLimits(),
) -> None:
    """Serve one submission; never returns normally.

    Args:
        sock: Connection to the judge.
        output_fd: Where the submission's stdout and stderr go.
        scratch: This worker's own folder.
        device_id: ``"cpu"`` or ``"cuda:0"``.
        tier: Isolation tier to enter.
        limits: What it may use of the machine.
    """
    _redirect_output(output_fd)
    enter_fence(tier, scratch, limits)
    tempfile.tempdir = None  # chosen again from TMPDIR
    use_fast_builds(tier)
    channel: Channel[Order] = Channel(sock, Order, max_frame_bytes=16 << 20)
    channel.send(Fenced(tier.value))
    try:
        first = channel.receive()
        assert isinstance(first, Wake), "A worker is woken before anything else."
        device = torch.device(device_id)
        _wake_device(device)
        channel.send(Awake())
        witness = Witness(device)
        witness.warm_up()
        tools = _Tools(device, scratch, create_stopwatch(device), witness)
        channel.send(Ready())
        _serve(channel, tools)
    except ChannelClosed:
        os._exit(0)


@dataclass(frozen=True)
class _Tools:
    """What was made ready before the submission came."""

    device: torch.device
    scratch: Path
    stopwatch: Stopwatch
    witness: Witness


def _serve(channel: Channel[Order], tools: _Tools) -> None:
    bench: _Bench | None = None
    try:
        while True:
            order = channel.receive()
            if isinstance(order, Idle):
                _idle(order, tools, channel)
            elif isinstance(order, Load):
                channel.send(Received())
                bench = _Bench(order, tools)
                channel.send(Loaded())
            elif bench is None:
                raise RuntimeError(f"{type(order).__name__} came before Load.")
            elif isinstance(order, Attach):
                channel.send(bench.attach(order, channel.take_fds(len(order.arenas))))
            elif isinstance(order, Call):
                bench.call(order, channel)
            else:
                raise RuntimeError(f"{type(order).__name__} came out of turn.")
    except CandidateError as error:
        message = bounded(sendable_text(error.message), _MESSAGE_CHARS)
        channel.send(Failed(error.kind, message, bounded(sendable_text(error.detail), _DETAIL_CHARS)))
    except BaseException as error:
        # Only the submission's interference, the device it has broken or the memory it has left can bring the
        # harness down.
        short = is_out_of_memory(error)
        kind = FailureKind.MEMORY if short else FailureKind.RUNTIME
        text = out_of_memory_text(error) if short else f"{type(error).__name__}: {error}"
        channel.send(Failed(kind, bounded(sendable_text(text), _MESSAGE_CHARS)))


def _idle(order: Idle, tools: _Tools, channel: Channel[Order]) -> None:
    with tools.witness.watch(profiled=False) as observation:
        timed = tools.stopwatch.time(lambda: None, order.spin_us)
        channel.send(Called(timed.elapsed_us, timed.launch_us))
    channel.send(Evidence(observation.evidence))


class _Bench:
    def __init__(self, load: Load, tools: _Tools) -> None:
        self._load = load
        self._tools = tools
        self._device = tools.device
        self._inputs: list[Arena] = []
        self._output: Arena | None = None
        self._candidate = Candidate(load.code, tools.scratch, load.init_arguments, tools.device)
        if precompile(self._candidate, load.arguments, tools.device, load.stand_in_bytes):
            # What the module or the model kept from a pass without launches is worth nothing.
            self._candidate = self._candidate.renewed(load.init_arguments, tools.device)
            # Others may need it while this one waits for the device.
            torch.cuda.empty_cache()

    def attach(self, order: Attach, fds: tuple[int, ...]) -> Claim:
        arenas = [
            map_arena(self._device, spec.size_bytes, fd, writable=spec.writable)
            for spec, fd in zip(order.arenas, fds, strict=True)
        ]
        self._inputs = arenas[: order.input_arenas]
        self._output = arenas[order.input_arenas]
        if self._load.parameters:
            parameters = arenas[order.input_arenas + 1].bytes
            self._candidate.load_parameters({p.name: view(parameters, p.slot) for p in self._load.parameters})
        return Attached()

    def call(self, order: Call, channel: Channel[Order]) -> None:
        arena = self._inputs[order.arena]
        arguments = [_argument(arena, argument) for argument in self._load.arguments]
        watch = self._tools.witness.watch(
            profiled=order.profiled, arguments=arguments, model=self._candidate.model
        )
        with torch.no_grad(), watch as observation:
            timed = self._time(lambda: _by_rows(self._candidate.forward(arguments)), order.spin_us)
            # Still watched, and at once: nothing is to be gained by leaving work for later.
            observation.outputs = self._hand_over(timed.result)
            # Before the evidence is put together, which would count as the submission's time.
            channel.send(Called(timed.elapsed_us, timed.launch_us))
            run_canary(order.canary)
        libraries = own_libraries(self._tools.scratch) if order.profiled else 0
        channel.send(Evidence(observation.evidence, libraries))

    def _hand_over(self, result: Any) -> list[torch.Tensor]:
        """Copy the outputs into their arena, and return them."""
        outputs = self._candidate.outputs(result, self._load.outputs, self._device)
        for position, tensor in enumerate(outputs):
            if any(_lies_in(tensor, arena) for arena in self._inputs):
                raise CandidateError(
                    FailureKind.CONTRACT,
                    f"Output {position} lies in the memory of an input; forward must return new tensors.",
                )
        assert self._output is not None, "Memory is attached before the first call."
        for slot, tensor in zip(self._load.outputs, outputs, strict=True):
            _copy(view(self._output.bytes, slot), tensor)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return outputs

    def _time(self, call: Callable[[], Any], spin_us: float) -> TimedCall[Any]:
        try:
            return self._tools.stopwatch.time(call, spin_us)
        except CandidateError:
            raise
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise CandidateError(FailureKind.MEMORY, out_of_memory_text(error)) from error
            # A kernel's fault surfaces at the synchronisation, outside the submission's own frames.
            raise CandidateError(FailureKind.RUNTIME, _device_fault(error)) from error


def _argument(arena: Arena, argument: Argument) -> Any:
    return argument.value if argument.slot is None else view(arena.bytes, argument.slot)


def _by_rows(result: Any) -> Any:
    """A result with its tensors laid out by rows, which is part of the work: left to the copy it would be free."""
    if isinstance(result, (tuple, list)):
        return [_by_rows(part) for part in result]
    # Anything else is refused when it is handed over, with a reason.
    if type(result) is not _Tensor or result.layout is not torch.strided or _is_contiguous(result):
        return result
    return _contiguous(result)


def _lies_in(tensor: torch.Tensor, arena: Arena) -> bool:
    start = arena.bytes.data_ptr()
    return start <= tensor.data_ptr() < start + arena.size_bytes


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
        let_the_interpreter_autotune()
        let_the_interpreter_multiply_bfloat16()
        return
    # Here, unlike in the host, CUDA may be asked directly.
    os.environ.pop("PYTORCH_NVML_BASED_CUDA_CHECK", None)
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
