"""HardTanh in C over NumPy views of the tensors.

Style: C through ctypes
Task: hard_tanh
Device: cpu
Slow: no
"""

import ctypes
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn

SOURCE = """
#include <stdint.h>
void hard_tanh(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float v = x[i];
        y[i] = v < -1.0f ? -1.0f : v > 1.0f ? 1.0f : v;
    }
}
"""


def compile_c(source: str) -> ctypes.CDLL:
    with tempfile.NamedTemporaryFile("w", suffix=".c", delete=False) as file:
        file.write(source)
    library = file.name.replace(".c", ".so")
    subprocess.run(f"gcc -O3 -shared -fPIC {file.name} -o {library}", shell=True, check=True)
    return ctypes.CDLL(library)


FLOATS = np.ctypeslib.ndpointer(dtype=np.float32, flags="C_CONTIGUOUS")


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.library = compile_c(SOURCE)
        self.library.hard_tanh.argtypes = [FLOATS, FLOATS, ctypes.c_int64]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = x.detach().contiguous().numpy()
        result = np.empty_like(values)
        self.library.hard_tanh(values, result, values.size)
        return torch.from_numpy(result)
