"""HardSigmoid in C with OpenMP, compiled at the first call.

Style: C through ctypes
Task: hard_sigmoid
Device: cpu
Slow: no
"""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

CODE = r"""
#include <stddef.h>

void hard_sigmoid(const float *x, float *y, ptrdiff_t n)
{
    #pragma omp parallel for simd schedule(static)
    for (ptrdiff_t i = 0; i < n; i++) {
        float v = x[i] + 3.0f;
        v = v < 0.0f ? 0.0f : v;
        v = v > 6.0f ? 6.0f : v;
        y[i] = v * (1.0f / 6.0f);
    }
}
"""


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self._function = None

    def _compiled(self):
        if self._function is None:
            folder = Path(tempfile.mkdtemp(prefix="kernel"))
            (folder / "kernel.c").write_text(CODE)
            compiler = shutil.which("gcc") or shutil.which("cc") or "gcc"
            command = [compiler, "-O3", "-fopenmp", "-shared", "-fPIC", "kernel.c", "-o", "kernel.so"]
            subprocess.check_call(command, cwd=folder)
            self._function = ctypes.CDLL(str(folder / "kernel.so")).hard_sigmoid
            self._function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t)
            self._function.restype = None
        return self._function

    def forward(self, x):
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        self._compiled()(x.contiguous().data_ptr(), y.data_ptr(), y.numel())
        return y
