"""Run as a program: nvcc for one file, with what its host and its device side do done at the same time.

    python nvcc_phases.py /usr/local/cuda/bin/nvcc ARGUMENTS...

nvcc runs its phases one after the other: preprocess, split (cudafe++), preprocess again, compile for the device
(cicc, ptxas), compile for the host. The commands are its own, taken from ``nvcc --dryrun``; only the order differs.
The two sides share one thing, a name that makes this unit's symbols unique, which is made up here beforehand; nvcc lets
cudafe++ make it up. Where the commands are not the expected ones, nvcc runs as always.

This file uses the standard library alone, so that it starts at once.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Phases", "main", "read_phases"]

_VARIABLE = re.compile(r"^([A-Z_]+)=(.*)$")
_KEPT_VARIABLES = ("CICC_PATH", "LD_LIBRARY_PATH", "NVVMIR_LIBRARY_DIR", "PATH", "TOP")
_MODULE_ID = re.compile(r'--gen_module_id_file --module_id_file_name "([^"]+)"')
_DEPENDENCIES = ("-MD", "-MMD")
_DRY_RUN_S = 60


@dataclass(frozen=True)
class Phases:
    """nvcc's commands for one file and one device architecture.

    Attributes:
        environment: Variables that they run with.
        split: Commands of the host's side up to the program that its compiler takes.
        device: Commands of the device's side up to the fat binary that the former includes.
        host: The host compiler's command.
        module_id_file: File that holds the unit's unique name.
    """

    environment: dict[str, str]
    split: tuple[str, ...]
    device: tuple[str, ...]
    host: str
    module_id_file: Path


def read_phases(dry_run: str, environment: dict[str, str]) -> Phases | None:
    """Understand what ``nvcc --dryrun`` wrote.

    Args:
        dry_run: Its standard error.
        environment: Environment of this process.

    Returns:
        The phases; ``None`` where they are not those of one file for one architecture.
    """
    variables = dict(environment)
    kinds: dict[str, list[str]] = {}
    for line in dry_run.splitlines():
        if not line.startswith("#$ "):
            return None
        line = line[3:].strip()
        variable = _VARIABLE.match(line)
        if variable:
            if variable[1] in _KEPT_VARIABLES:
                variables[variable[1]] = variable[2].strip()
            continue
        kind = _kind(line)
        if kind is None:
            return None
        kinds.setdefault(kind, []).append(line)
    once = ("preprocess host", "cudafe++", "preprocess device", "cicc", "fatbinary", "host")
    if any(len(kinds.get(kind, [])) != 1 for kind in once):
        return None
    module_id = _MODULE_ID.search(kinds["cudafe++"][0])
    if module_id is None or f'--module_id_file_name "{module_id[1]}"' not in kinds["cicc"][0]:
        return None
    # Without the first option cudafe++ reads the name, as cicc does.
    split = kinds["cudafe++"][0].replace("--gen_module_id_file ", "")
    return Phases(
        variables,
        (kinds["preprocess host"][0], split),
        (kinds["preprocess device"][0], kinds["cicc"][0], *kinds.get("ptxas", ()), kinds["fatbinary"][0]),
        kinds["host"][0],
        Path(module_id[1]),
    )


def _kind(command: str) -> str | None:
    if " -E -x c++ " in command:
        return "preprocess device" if "-D__CUDA_ARCH__=" in command else "preprocess host"
    if " -c -x c++ " in command:
        return "host"
    program = command.split(" ", 1)[0].strip('"').rsplit("/", 1)[-1]
    return program if program in ("cudafe++", "cicc", "ptxas", "fatbinary", "rm") else None


def main(arguments: list[str]) -> int:
    """Compile; returns the exit code.

    Args:
        arguments: Path of nvcc and what follows it.
    """
    nvcc, *options = arguments
    source = next((option for option in options if option.endswith((".cu", ".cuh"))), None)
    if source is None or "-c" not in options:
        return subprocess.run([nvcc, *options], check=False).returncode
    options = _without_dependencies(options)
    with tempfile.TemporaryDirectory(prefix="nvcc-") as folder:
        dry = subprocess.run(
            [nvcc, "--dryrun", "--keep", "--keep-dir", folder, *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=_DRY_RUN_S,
        )
        phases = read_phases(dry.stderr, dict(os.environ)) if dry.returncode == 0 else None
        if phases is None:
            return subprocess.run([nvcc, *options], check=False).returncode
        phases.module_id_file.write_text(_unique_name(source, options))
        return _run(phases)


def _without_dependencies(options: list[str]) -> list[str]:
    """Leave out the list of included files: whoever builds once never reads it."""
    kept: list[str] = []
    skip = False
    for option in options:
        if skip or option in _DEPENDENCIES:
            skip = False
        elif option == "-MF":
            skip = True
        else:
            kept.append(option)
    return kept


def _unique_name(source: str, options: list[str]) -> str:
    text = Path(source).read_bytes() + "\0".join(options).encode()
    digest = hashlib.sha256(text).hexdigest()
    name = re.sub(r"\W", "_", Path(source).name)
    return f"_{digest[:8]}_{len(name)}_{name}_{digest[8:16]}"


def _run(phases: Phases) -> int:
    codes: list[int] = []

    def run(side: tuple[str, ...]) -> None:
        codes.append(_run_in_turn(side, phases.environment))

    sides = [threading.Thread(target=run, args=(side,)) for side in (phases.split, phases.device)]
    for thread in sides:
        thread.start()
    for thread in sides:
        thread.join()
    failed = [code for code in codes if code != 0]
    return failed[0] if failed else _run_in_turn((phases.host,), phases.environment)


def _run_in_turn(commands: tuple[str, ...], environment: dict[str, str]) -> int:
    for command in commands:
        done = subprocess.run(["/bin/sh", "-c", command], env=environment, check=False)
        if done.returncode != 0:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
