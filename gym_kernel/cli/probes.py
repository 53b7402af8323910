"""What is installed on this machine, found out without importing torch or touching a GPU."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Finding", "Gpu", "compilers", "cpu_name", "find_gpus", "software", "torch_cuda_version"]

_ANSWER_S = 10.0
_GPU_FIELDS = ("index", "name", "memory.total", "driver_version", "compute_cap")

_MINIMUM = {"torch": "2.9", "triton": "3.5", "gymnasium": "1.2"}
_MINIMUM_PYTHON = (3, 10)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        name: What it is.
        ok: Whether it is there and new enough.
        text: What was found: a version and a place.
        remedy: What to do where it is not ok.
    """

    name: str
    ok: bool
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver describes it.

    Attributes:
        index: The driver's number for it.
        name: Marketing name.
        memory_mib: Size of its memory in MiB, as the driver prints it.
        driver: Driver version.
        compute_capability: ``"9.0"`` and the like.
    """

    index: str
    name: str
    memory_mib: str
    driver: str
    compute_capability: str


def software() -> dict[str, Finding]:
    """Python and the packages that the evaluator needs, by name."""
    found = {"python": _python()}
    for name, minimum in _MINIMUM.items():
        found[name] = _package(name, minimum)
    found["cuda-bindings"] = _package("cuda-bindings", "")
    return found


def compilers() -> dict[str, Finding]:
    """Compilers and what they need to build an extension, by name."""
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return {
        "g++": _program("g++", _cxx(), "install a C++ compiler: sudo apt-get install g++ (or set CXX)"),
        "cc": _program(
            "cc", _cc(), "install a C compiler, which Triton needs on a GPU: sudo apt-get install gcc"
        ),
        "ninja": _program("ninja", _beside_python("ninja"), "pip install ninja"),
        "Python.h": Finding(
            "Python.h",
            header.is_file(),
            str(header),
            f"sudo apt-get install python3.{sys.version_info.minor}-dev",
        ),
        "nvcc": _program("nvcc", _nvcc(), _nvcc_remedy()),
    }


def find_gpus() -> tuple[Gpu, ...]:
    """NVIDIA GPUs as ``nvidia-smi`` lists them; none where it is missing or does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    listing = _output([program, f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader,nounits"])
    rows = [[cell.strip() for cell in line.split(",")] for line in listing.splitlines()]
    return tuple(Gpu(*row) for row in rows if len(row) == len(_GPU_FIELDS))


def torch_cuda_version() -> str:
    """CUDA version that torch was built for; empty for a CPU build or without torch."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return ""
    try:
        # Read and not imported: importing torch takes seconds.
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(r"^cuda\b[^=]*=\s*['\"]([\d.]+)['\"]", text, re.MULTILINE)
    return match[1] if match else ""


def cpu_name() -> str:
    """Name of the processor, as well as it is known."""
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        info = ""
    match = re.search(r"^model name\s*:\s*(.+)$", info, re.MULTILINE)
    return match[1] if match else platform.machine()


def _python() -> Finding:
    least = ".".join(map(str, _MINIMUM_PYTHON))
    ok = sys.version_info[:2] >= _MINIMUM_PYTHON
    return Finding(
        "python", ok, f"{platform.python_version()} ({least} or newer)", f"use Python {least} or newer"
    )


def _package(name: str, minimum: str) -> Finding:
    remedy = f'pip install "{name}>={minimum}"' if minimum else f"pip install {name}"
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", remedy)
    text = f"{version} ({minimum} or newer)" if minimum else version
    return Finding(name, _numbers(version) >= _numbers(minimum), text, remedy)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:2])


def _program(name: str, path: str | None, remedy: str) -> Finding:
    if path is None:
        return Finding(name, False, "not found", remedy)
    version = re.search(r"\d+\.\d+(?:\.\d+)?", _output([path, "--version"]))
    return Finding(name, True, f"{version[0]} ({path})" if version else path)


def _cxx() -> str | None:
    return shutil.which(os.environ.get("CXX", "c++")) or shutil.which("g++")


def _cc() -> str | None:
    named = os.environ.get("CC")
    return shutil.which(named) if named else shutil.which("gcc") or shutil.which("clang")


def _beside_python(program: str) -> str | None:
    # Where an environment is used without being activated, its programs are not on the PATH.
    return shutil.which(program) or shutil.which(program, path=str(Path(sys.executable).parent))


def _nvcc() -> str | None:
    # In torch's own order: see torch.utils.cpp_extension.
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return shutil.which("nvcc", path=str(Path(home) / "bin"))
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def _nvcc_remedy() -> str:
    version = torch_cuda_version()
    wanted = f"CUDA toolkit {version}" if version else "CUDA toolkit that matches torch"
    return f"install the {wanted} from https://developer.nvidia.com/cuda-downloads and set CUDA_HOME"


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
