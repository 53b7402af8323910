"""A task whose bytes are known: ``x + 2 * y`` over any number of elements, and a Triton kernel for it.

Three tensors of float32 and not the two of a copy, so that 5 ms of an H200's memory stay below 2^31 elements.
"""

from __future__ import annotations

from gym_kernel.tasks import Domain, Task, TaskScale

__all__ = ["COLUMNS", "KERNEL", "SOURCE", "moved_bytes", "triad"]

COLUMNS = 1024
_BYTES_PER_ELEMENT = 12

_REFERENCE = f'''"""x + 2 * y, element by element (the triad of McCalpin's STREAM)."""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.add(x, y, alpha=2.0)


rows = 1024


def get_inputs():
    return [torch.rand(rows, {COLUMNS}), torch.rand(rows, {COLUMNS})]


def get_init_inputs():
    return []
'''

#: Name of the kernel in :data:`SOURCE`.
KERNEL = "triad_kernel"

#: A submission that solves the task.
SOURCE = f"""import torch
import triton
import triton.language as tl


@triton.jit
def {KERNEL}(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n - start
    x = tl.load(x_ptr + start + offsets, mask=mask)
    y = tl.load(y_ptr + start + offsets, mask=mask)
    tl.store(out_ptr + start + offsets, x + 2.0 * y, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        n = x.numel()
        # Triton's interpreter takes its time for each program, however large.
        block = 2048 if x.is_cuda else 16384
        {KERNEL}[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block, num_warps=8)
        return out
"""


def triad(rows: int) -> Task:
    """The task at ``rows`` rows of 1,024 elements, on either kind of device."""
    sizes = {"rows": rows}
    return Task(
        id=f"triad_{rows}",
        suite="benchmarks",
        title="Triad",
        source=_REFERENCE,
        sizes={TaskScale.OFFICIAL: sizes, TaskScale.SMALL: sizes},
        domains=(Domain(), Domain()),
        flops_per_element=2.0,
        rows_independent=True,
        memory_gib=110.0,
    )


def moved_bytes(rows: int) -> int:
    """Bytes that the task must move at the least: two inputs read, one output written."""
    return rows * COLUMNS * _BYTES_PER_ELEMENT
