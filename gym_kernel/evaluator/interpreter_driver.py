"""What Triton's interpreter lacks for honest kernels to work in it: a benchmark to autotune by, bfloat16 products."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

__all__ = ["let_the_interpreter_autotune", "let_the_interpreter_multiply_bfloat16"]


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


def let_the_interpreter_multiply_bfloat16() -> None:
    """Widen the operands of ``tl.dot`` first: the interpreter holds bfloat16 as bits, and would multiply those."""
    from triton.runtime import interpreter

    kind = type(interpreter.interpreter_builder)
    multiply = kind.create_dot
    if getattr(multiply, "widens_bfloat16", False):
        return

    def widening(self: Any, a: Any, b: Any, *rest: Any, **more: Any) -> Any:
        return multiply(self, _widened(a), _widened(b), *rest, **more)

    widening.widens_bfloat16 = True  # type: ignore[attr-defined]
    kind.create_dot = widening


def _widened(operand: Any) -> Any:
    import numpy as np
    import triton.language as tl

    if operand.dtype.scalar != tl.bfloat16 or operand.data.dtype != np.uint16:
        return operand
    return type(operand)((operand.data.astype(np.uint32) << 16).view(np.float32), tl.float32)


def _time_once(call: Callable[[], object], *, quantiles: Any = None, **_: Any) -> Any:
    started = time.perf_counter()
    call()
    elapsed_ms = (time.perf_counter() - started) * 1e3
    return elapsed_ms if quantiles is None else [elapsed_ms] * len(quantiles)
