"""GELU in C with the C library's tanhf, compiled with gcc and called through ctypes.

Style: C through ctypes
Task: mingpt_gelu
Device: cpu
Slow: no
"""

import ctypes
import hashlib
import os
import subprocess

import torch

SOURCE = r"""
#include <math.h>

void gelu(const float *x, float *y, long n) {
  for (long i = 0; i < n; ++i) {
    const float u = 0.79788456080286535588f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
    y[i] = 0.5f * x[i] * (1.0f + tanhf(u));
  }
}
"""


def library():
    """The compiled library, from a cache beside other caches if it is there already."""
    cache = os.path.join(os.path.expanduser("~"), ".cache", "my_gelu")
    os.makedirs(cache, exist_ok=True)
    name = hashlib.sha256(SOURCE.encode()).hexdigest()[:16]
    path = os.path.join(cache, name + ".so")
    if not os.path.exists(path):
        source = os.path.join(cache, name + ".c")
        with open(source, "w") as f:
            f.write(SOURCE)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", source, "-o", path, "-lm"], check=True)
    return ctypes.CDLL(path)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gelu = library().gelu
        self.gelu.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape, dtype=x.dtype)
        self.gelu(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), x.numel())
        return y
