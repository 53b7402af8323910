"""Triton's compiler is made ready before workers are forked, without a GPU being touched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, time, warnings
import torch, triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from gym_kernel.evaluator.triton_warmth import warm_triton
{source}

def compile_s(name):
    started = time.perf_counter()
    triton.compile(
        ASTSource(fn=globals()[name], signature={{"x_ptr": "*fp32", "n": "i32"}}, constexprs={{}}),
        target=GPUTarget("cuda", 90, 32),
    )
    return time.perf_counter() - started

def in_a_fork(name):
    pid = os.fork()
    if pid == 0:
        print(compile_s(name), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)

in_a_fork("kernel_0")
with warnings.catch_warnings():
    # Without a GPU there is no driver to make active, which is said in a warning.
    warnings.simplefilter("ignore")
    warm_triton()
assert not torch.cuda.is_initialized()
in_a_fork("kernel_1")
"""
KERNEL = """
@triton.jit
def kernel_{number}(x_ptr, n):
    i = tl.program_id(0) * 128 + tl.arange(0, 128)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * {number}.5, mask=i < n)
"""


def test_forks_compile_sooner_once_triton_is_warm(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(source="".join(KERNEL.format(number=n) for n in range(2))))
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("TRITON_INTERPRET", None)
    found = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 0, found.stderr
    cold_s, warm_s = map(float, found.stdout.split())
    assert warm_s < 0.7 * cold_s
