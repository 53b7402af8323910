"""What of the file system a worker may read: the system, Python and the compilers; nobody's home."""

from __future__ import annotations

import contextlib
import functools
import glob
import os
import pwd
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from gym_kernel.evaluator.prepared_headers import extensions_root

__all__ = ["device_files", "gpu_files", "visible_paths"]

# Of /etc what loaders, compilers and Python look at; a worker that may read any file must not find shadow here.
_SYSTEM = (
    "/bin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/opt", "/sbin", "/sys", "/usr",
    "/etc/OpenCL", "/etc/alternatives", "/etc/crypto-policies", "/etc/gai.conf", "/etc/group", "/etc/host.conf",
    "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias",
    "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/nvidia", "/etc/os-release", "/etc/passwd",
    "/etc/ssl/openssl.cnf",
)  # fmt: skip
_TOOLS = ("c++", "cc", "clang", "clang++", "cuobjdump", "g++", "gcc", "ld", "ninja", "nvcc", "ptxas")
_TOOL_VARIABLES = ("CC", "CXX", "TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH")
_FOLDER_VARIABLES = ("CUDA_HOME", "CUDA_PATH")
_LIST_VARIABLES = ("CPATH", "CPLUS_INCLUDE_PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH")
_DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")


@functools.lru_cache(maxsize=1)
def visible_paths() -> tuple[Path, ...]:
    """Existing files and folders that workers of this process may read and execute.

    Both the names that programs use and, where links lead elsewhere, the places behind them. Computed once,
    so the host asks for it after it has imported what its workers need.
    """
    named = [Path(path) for path in (*_SYSTEM, *_python_paths(), *_tool_paths())]
    prepared = extensions_root()
    if prepared is not None:
        named.append(prepared)
    real = [path.resolve() for path in named]
    # Where a home is itself inside a prefix, what it takes is granted, and never the home as such.
    wanted = {path for path in (*named, *real) if path.exists() and not _holds_a_home(path)}
    return tuple(sorted(path for path in wanted if not any(parent in wanted for parent in path.parents)))


def device_files() -> tuple[Path, ...]:
    """Device files that any program may read and write."""
    return tuple(Path(name) for name in _DEVICES if os.path.exists(name))


def gpu_files() -> tuple[Path, ...]:
    """Device files of the GPUs; none where this host was started for the CPU."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return ()
    names = (*glob.glob("/dev/nvidia*"), *glob.glob("/dev/nvidia-caps/*"))
    return tuple(Path(name) for name in sorted(names))


def _python_paths() -> Iterator[str]:
    yield from {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    yield from {path for name, path in sysconfig.get_paths().items() if name not in ("data", "scripts")}
    for entry in sys.path:
        # A folder of the caller's own, such as a checkout, is opened for no more than the packages in use.
        if os.path.isdir(os.path.join(entry, "torch")):
            yield os.path.abspath(entry)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and "." not in name and name != "__main__":
            yield os.path.dirname(file) if os.path.basename(file).startswith("__init__.") else file


def _tool_paths() -> Iterator[str]:
    for name in (*_TOOLS, *filter(None, map(os.environ.get, _TOOL_VARIABLES))):
        found = shutil.which(name)
        if found:
            yield from _toolkit_of(Path(found))
    yield from filter(None, map(os.environ.get, _FOLDER_VARIABLES))
    for value in filter(None, map(os.environ.get, _LIST_VARIABLES)):
        yield from (os.path.abspath(entry) for entry in value.split(os.pathsep) if entry)


def _toolkit_of(program: Path) -> Iterable[str]:
    """A compiler finds its headers and helpers beside the ``bin`` that it is in."""
    for path in (program, program.resolve()):
        root = path.parent.parent
        yield str(path.parent if _holds_a_home(root) else root)


@functools.lru_cache(maxsize=1)
def _homes() -> tuple[Path, ...]:
    homes = {os.path.abspath(os.environ.get("HOME", "/root"))}
    # Containers run under numbers that no account has.
    with contextlib.suppress(KeyError):
        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    paths = [path for home in homes for path in (Path(home), Path(home).resolve())]
    # Accounts of services have folders of the system for homes, and those hold nothing private.
    return tuple(path for path in paths if path.parts[:2] not in (("/", "usr"), ("/", "bin"), ("/", "sbin")))


def _holds_a_home(path: Path) -> bool:
    return path == Path("/") or any(home == path or path in home.parents for home in _homes())
