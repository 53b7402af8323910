"""The compilers that tests of builds need, and a way to run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import pytest

__all__ = ["CXX", "NVCC", "needs_compiler", "needs_nvcc", "run"]

CXX = shutil.which(os.environ.get("CXX", "c++"))
NVCC = shutil.which("nvcc")

needs_compiler = pytest.mark.skipif(
    CXX is None or shutil.which("ninja") is None, reason="a C++ compiler and ninja are needed"
)
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="nvcc is not on the path")


def run(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a compiler, or another program, within ten minutes, and keep what it prints."""
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, **options)
