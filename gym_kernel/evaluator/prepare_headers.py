"""Run as a program, by a host in the background or by hand: prepare torch's headers for fast builds of extensions.

    python -m gym_kernel.evaluator.prepare_headers

Takes about a minute on one core and 1.1 GB of the cache folder, once for each Python environment with its torch and
compilers. The folder is written under another name and renamed when it is complete, so nobody sees half of it.
"""

from __future__ import annotations

import argparse
import fcntl
import inspect
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from gym_kernel.evaluator.declared_names import Declaration, declarations
from gym_kernel.evaluator.hidden_names import HiddenName, hidden_names
from gym_kernel.evaluator.light_headers import (
    MAKE_VARIABLE,
    UnknownHeaders,
    cure_for,
    make_cpp_headers,
    make_cuda_headers,
)
from gym_kernel.evaluator.nvcc_phases import read_phases
from gym_kernel.evaluator.prepared_headers import PreparedHeaders, extensions_root, headers_folder
from gym_kernel.evaluator.processes import die_with_parent

__all__ = ["OPTIMISATIONS", "main", "prepare_headers"]

OPTIMISATIONS = ("", "-O3")
"""Optimisation with which headers are precompiled; a compiler takes any level but none for any other."""

_ONE_COMMAND_S = 300
_ALL_S = 1800
_MACRO = re.compile(r"^#(define|undef) (\w+)(.*)$", re.MULTILINE)
_EXTENSION = "#include <torch/extension.h>\n"
_TEMPORARY = "making-"


_Read = tuple[list[Declaration], dict[str, str]]
"""Declarations of a unit, and its macros with their replacements."""

_Say = Callable[[str], None]
"""Takes a line about what is done next."""


def _say_nothing(_: str) -> None:
    """For callers that nobody watches."""


class _Failed(Exception):
    """A command did not work."""


def prepare_headers(optimisations: Sequence[str] = OPTIMISATIONS, say: _Say = _say_nothing) -> Path | None:
    """Prepare the headers of this Python's torch, unless they are there.

    Args:
        optimisations: Flags to precompile them with, one after the other; empty for none.
        say: Is told what is done next, in a line.

    Returns:
        Their folder; ``None`` where another process prepares them now, or there is no folder for them.

    Raises:
        UnknownHeaders: This torch's headers are not as expected.
        OSError: The folder cannot be written.
        RuntimeError: A compiler is missing, or fails.
    """
    root = extensions_root()
    if root is None:
        return None
    folder = headers_folder(root)
    with open(root / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        for left_over in root.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(left_over, ignore_errors=True)
        if not folder.exists():
            making = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=root))
            making.chmod(0o755)
            try:
                _fill(PreparedHeaders(making), optimisations, say)
                making.rename(folder)
            except _Failed as error:
                raise RuntimeError(str(error)) from error
            finally:
                shutil.rmtree(making, ignore_errors=True)
    return folder


def _fill(prepared: PreparedHeaders, optimisations: Sequence[str], say: _Say) -> None:
    import torch
    from torch.utils import cpp_extension

    compiler = shlex.split(cpp_extension.get_cxx_compiler())
    flags = _flags("cflags", prepared.folder, with_cuda=False)
    say("reading torch's headers for C++ ...")
    make_cpp_headers(prepared.cpp)
    full = _read([*compiler, *flags], prepared.folder)
    light = _read([*compiler, "-I", str(prepared.cpp), *flags], prepared.folder)
    header = prepared.cpp / "torch" / "extension.h"
    (header.parent / "extension.h.gch").mkdir()
    for optimisation in optimisations:
        name = optimisation.strip("-") or "plain"
        say(f"precompiling them ({name}) ...")
        output = header.parent / "extension.h.gch" / f"{name}.gch"
        options = [option for option in (*flags, optimisation) if option]
        _run(
            [*compiler, "-I", str(prepared.cpp), *options, "-x", "c++-header", str(header), "-o", str(output)]
        )
    if cpp_extension.CUDA_HOME:
        say("reading torch's headers for CUDA ...")
        try:
            _fill_cuda(prepared, Path(torch.__file__).parent / "include", compiler)
        except (_Failed, UnknownHeaders) as error:
            print(f"No light headers for CUDA: {error}", file=sys.stderr)
            shutil.rmtree(prepared.cuda, ignore_errors=True)
    prepared.write_hidden("cpp", _hidden(full, light))


def _fill_cuda(prepared: PreparedHeaders, torch_include: Path, compiler: list[str]) -> None:
    from torch.utils import cpp_extension

    make_cuda_headers(prepared.cuda, torch_include)
    flags = _flags("cuda_cflags", prepared.folder, with_cuda=True)
    source = prepared.folder / "unit.cu"
    source.write_text(_EXTENSION, encoding="utf-8")
    nvcc = os.path.join(cpp_extension.CUDA_HOME or "", "bin", "nvcc")
    found: set[HiddenName] = set()
    for side in ("host", "device"):
        full = _read_cuda([nvcc, *flags], source, side)
        light = _read_cuda([nvcc, "-I", str(prepared.cuda), *flags], source, side)
        found |= _hidden(full, light, cure_for)
    source.unlink()
    unit = prepared.folder / "make_variable.cpp"
    unit.write_text(MAKE_VARIABLE, encoding="utf-8")
    cpp_flags = _flags("cflags", prepared.folder, with_cuda=True)
    _run([*compiler, *cpp_flags, "-O2", "-c", str(unit), "-o", str(prepared.cuda_object)])
    unit.unlink()
    prepared.write_hidden("cuda", found)


def _flags(variable: str, folder: Path, *, with_cuda: bool) -> list[str]:
    """The flags with which torch compiles, taken from the build file that it writes."""
    from torch.utils import cpp_extension

    write = cpp_extension._write_ninja_file_to_build_library
    arguments: dict[str, object] = {name: [] for name in inspect.signature(write).parameters}
    # Any architecture will do; torch would look for a GPU otherwise.
    arguments.update(
        path=str(folder / "build.ninja"),
        name="unit",
        sources=["unit.cu" if with_cuda else "unit.cpp"],
        extra_cuda_cflags=["-arch=sm_80"],
        with_cuda=with_cuda,
        with_sycl=False,
        is_standalone=False,
    )
    write(**arguments)
    text = (folder / "build.ninja").read_text(encoding="utf-8")
    (folder / "build.ninja").unlink()
    match = re.search(rf"^{variable} = (.*)$", text, re.MULTILINE)
    if match is None:
        raise _Failed("torch's build file holds no flags.")
    # A precompiled header must not know the extension's name.
    return [flag for flag in shlex.split(match[1]) if "TORCH_EXTENSION_NAME" not in flag]


def _read(command: list[str], folder: Path) -> _Read:
    source = folder / "unit.cpp"
    source.write_text(_EXTENSION, encoding="utf-8")
    try:
        return _parse(_run([*command, "-E", "-dD", "-x", "c++", str(source)]))
    finally:
        source.unlink()


def _read_cuda(command: list[str], source: Path, side: str) -> _Read:
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        dry = [
            *command,
            "--dryrun",
            "--keep",
            "--keep-dir",
            folder,
            "-c",
            str(source),
            "-o",
            f"{folder}/unit.o",
        ]
        phases = read_phases(_run(dry, stream="stderr"), dict(os.environ))
        if phases is None:
            raise _Failed("nvcc's phases are not as expected.")
        preprocess = (phases.split if side == "host" else phases.device)[0].replace(" -E ", " -E -dD ", 1)
        _run(["/bin/sh", "-c", preprocess], environment=phases.environment)
        number = 4 if side == "host" else 1
        return _parse(next(Path(folder).glob(f"*.cpp{number}.ii")).read_text(encoding="utf-8"))


def _parse(text: str) -> _Read:
    macros: dict[str, str] = {}
    for match in _MACRO.finditer(text):
        if match[1] == "undef":
            macros.pop(match[2], None)
        elif match[3].strip() != match[2]:
            macros[match[2]] = match[3].strip()
    return list(declarations(text)), macros


def _hidden(
    full: _Read, light: _Read, cure: Callable[[Declaration], str] = lambda _: ""
) -> frozenset[HiddenName]:
    """What a program must not mention, macros that differ included."""
    macros = {name for name, _ in full[1].items() ^ light[1].items()}
    return hidden_names(full[0], light[0], macros, cure)


def _run(command: list[str], *, stream: str = "stdout", environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_ONE_COMMAND_S, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Failed(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise _Failed(f"{shlex.join(command)}: {done.stderr[-2000:]}")
    return str(getattr(done, stream))


def _say(line: str) -> None:
    print(f"Preparing headers, about a minute: {line}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m gym_kernel.evaluator.prepare_headers",
        description="Prepare torch's headers, so that C++ and CUDA extensions build fast: about a minute and 1.1 GB of "
        "the cache folder, once for each Python environment with its torch and compilers.",
    )
    parser.add_argument("--for-host", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Entry point of the program."""
    for_host = _options().for_host
    if for_host:
        die_with_parent(os.getppid())
        os.nice(10)
        signal.alarm(_ALL_S)
    # Workers of other users read it.
    os.umask(0o022)
    try:
        folder = prepare_headers(say=_say_nothing if for_host else _say)
    except (RuntimeError, OSError, UnknownHeaders) as error:
        sys.exit(f"Headers for fast builds were not prepared, so extensions build as slowly as ever: {error}")
    print(folder or "They are being prepared by another process.")


if __name__ == "__main__":
    main()
