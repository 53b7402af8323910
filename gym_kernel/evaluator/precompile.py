"""Compiling a submission's Triton kernels before it gets the device.

Triton compiles at a kernel's first launch. Here ``forward`` runs once with every launch replaced by its
compilation, so that several submissions compile side by side while another one is timed. torch's large operators are
left out as well: they would take time of the device from whoever is timed. It is a head start only: what it cannot
compile is compiled at the first real call.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from gym_kernel.evaluator.candidate import Candidate, CandidateError
from gym_kernel.evaluator.dry_run import DryRun
from gym_kernel.evaluator.worker_messages import Argument, FailureKind

__all__ = ["precompile"]


def precompile(
    candidate: Candidate, arguments: Sequence[Argument], device: torch.device, stand_in_bytes: int
) -> bool:
    """Compile what one forward pass would launch, without launching it.

    Args:
        candidate: A constructed submission.
        arguments: Arguments of ``forward``; tensors are stood in for by uninitialised ones.
        device: Where it will run; on a CPU there is nothing to compile.
        stand_in_bytes: Device memory that it may take. Where that is too little, nothing is compiled ahead.

    Returns:
        Whether ``forward`` was run for it. Then module and model must be made anew, because whatever they kept of
        that pass (a captured graph, a table) was computed by nothing.

    Raises:
        CandidateError: A Triton kernel does not compile.
    """
    if device.type != "cuda" or "triton" not in sys.modules or not _has_triton_kernels(candidate):
        return False
    if not stand_in_bytes:
        return False
    with _at_most(stand_in_bytes, device), _launches_compile_only(), torch.no_grad(), DryRun(device):
        try:
            candidate.forward([_stand_in(argument, device) for argument in arguments])
        except CandidateError as error:
            # Without launches a forward pass may fail for reasons of its own; the real call will tell.
            if error.kind is FailureKind.COMPILE:
                raise
        except torch.OutOfMemoryError:
            # More than was granted, or no room for it beside what runs now.
            pass
    return True


@contextmanager
def _at_most(size_bytes: int, device: torch.device) -> Iterator[None]:
    """Bound what torch may take of the device on top of what it has."""
    total_bytes = torch.cuda.get_device_properties(device).total_memory
    allowed_bytes = torch.cuda.memory_reserved(device) + size_bytes
    torch.cuda.set_per_process_memory_fraction(min(1.0, allowed_bytes / total_bytes), device)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)


def _stand_in(argument: Argument, device: torch.device) -> Any:
    if argument.slot is None:
        return argument.value
    return torch.empty(argument.slot.shape, dtype=getattr(torch, argument.slot.dtype), device=device)


def _has_triton_kernels(candidate: Candidate) -> bool:
    from triton.runtime.jit import KernelInterface

    return any(isinstance(value, KernelInterface) for value in vars(candidate.module).values())


def _load(kernel: Any) -> None:
    """Have a compiled kernel's launcher built and its code loaded, which Triton leaves for the first launch."""
    # That launch fails in the same way, and there a policy can be told.
    with suppress(Exception):
        _ = kernel.run


@contextmanager
def _launches_compile_only() -> Iterator[None]:
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    run, tune = JITFunction.run, Autotuner.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = run(self, *args, grid=grid, warmup=True, **kwargs)
        _load(kernel)
        return kernel

    def compile_all(self: Any, *args: Any, grid: Any, warmup: bool = True, **kwargs: Any) -> Any:
        return self.warmup(*args, grid=grid, **kwargs)

    JITFunction.run, Autotuner.run = compile_only, compile_all
    try:
        yield
    finally:
        JITFunction.run, Autotuner.run = run, tune
