"""GELU whose kernel's source is put together from text, written to a file and imported at the first call.

Style: generated kernel
Task: mingpt_gelu
Device: any
Slow: no
"""

import importlib.util
import os
import tempfile

import torch
import triton

TEMPLATE = """
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    y = {expression}
    tl.store(y_ptr + offsets, y, mask=inside)
"""

GELU = "x / (1.0 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))"


def elementwise(expression: str):
    """A kernel that applies an expression in ``x`` to every element."""
    handle, path = tempfile.mkstemp(suffix=".py", prefix="kernel_")
    with os.fdopen(handle, "w") as file:
        file.write(TEMPLATE.format(expression=expression))
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self._kernel = None

    @property
    def kernel(self):
        if self._kernel is None:
            self._kernel = elementwise(GELU)
        return self._kernel

    def forward(self, x):
        y = torch.empty_like(x)
        self.kernel[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), BLOCK=2048)
        return y
