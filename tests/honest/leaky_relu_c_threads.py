"""Leaky ReLU in C, called on groups of rows by Python threads that are all waited for.

Style: C through ctypes
Task: leaky_relu
Device: cpu
Slow: no
"""

import ctypes
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

SOURCE = """
void leaky_relu(const float *x, float *y, long n, float slope) {
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.0f ? slope * x[i] : x[i];
}
"""

folder = Path(tempfile.mkdtemp())
(folder / "leaky_relu.c").write_text(SOURCE)
subprocess.run(
    ["gcc", "-O3", "-shared", "-fPIC", "leaky_relu.c", "-o", "leaky_relu.so"], cwd=folder, check=True
)
kernel = ctypes.CDLL(str(folder / "leaky_relu.so")).leaky_relu
kernel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_float]
kernel.restype = None


class ModelNew(torch.nn.Module):
    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.pool = ThreadPoolExecutor(max_workers=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        # ctypes lets go of the interpreter's lock, so both halves run at once.
        waiting = [
            self.pool.submit(kernel, a.data_ptr(), b.data_ptr(), a.numel(), self.negative_slope)
            for a, b in zip(x.chunk(2), y.chunk(2), strict=True)
        ]
        for future in waiting:
            future.result()
        return y
