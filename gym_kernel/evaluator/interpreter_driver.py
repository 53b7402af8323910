"""Letting Triton's autotuner work in the interpreter, which has no device to ask for a benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

__all__ = ["let_the_interpreter_autotune"]


class _InterpreterDriver:
    """The little of a Triton driver that an autotuner asks for."""

    def get_benchmarker(self) -> Callable[..., Any]:
        """A benchmark of one call, because an interpreted kernel is slow and its time means nothing."""
        return _time_once

    def get_active_torch_device(self) -> Any:
        """Where the interpreter computes."""
        import torch

        return torch.device("cpu")


def let_the_interpreter_autotune() -> None:
    """Put a driver in place whose benchmark runs on the host."""
    from triton.runtime import driver

    driver.set_active(_InterpreterDriver())


def _time_once(call: Callable[[], object], *, quantiles: Any = None, **_: Any) -> Any:
    started = time.perf_counter()
    call()
    elapsed_ms = (time.perf_counter() - started) * 1e3
    return elapsed_ms if quantiles is None else [elapsed_ms] * len(quantiles)
