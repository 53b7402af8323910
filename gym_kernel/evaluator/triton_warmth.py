"""Doing in the host, once, what Triton's compiler and driver do at their first use in a process.

Workers are forks of the host and begin with it done. A worker's first compilation of a small kernel takes a sixth of
the time then: what goes is setting up LLVM and MLIR, hashing Triton's own files, asking ptxas for its version, and
building the driver's helper module with the C compiler. Nothing of a submission is kept: the kernel that is compiled
here is this module's own.
"""

from __future__ import annotations

import subprocess
import warnings

import triton
import triton.language as tl

__all__ = ["warm_triton"]

# No GPU is asked which it is, because the host must not touch one; what is set up serves every architecture.
_COMPUTE_CAPABILITY = 90
_WARP_THREADS = 32
_BLOCK = 1024


@triton.jit
def _copy_doubled(x_ptr, y_ptr, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.exp(x) + x, mask=inside)


def warm_triton() -> None:
    """Compile a kernel and make NVIDIA's driver the active one, without touching a GPU.

    Where that fails, a warning says why, and every worker finds out for itself.
    """
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.driver import CudaDriver
    from triton.compiler import ASTSource

    try:
        triton.compile(
            ASTSource(
                fn=_copy_doubled,
                signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "block": "constexpr"},
                constexprs={"block": _BLOCK},
            ),
            target=GPUTarget("cuda", _COMPUTE_CAPABILITY, _WARP_THREADS),
        )
        triton.runtime.driver.set_active(CudaDriver())
    except (AssertionError, ImportError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        warnings.warn(
            f"Triton could not be made ready before the workers ({type(error).__name__}: {error}), so that every "
            "first compilation is slower. `gym-kernel doctor` says what is missing.",
            stacklevel=2,
        )
