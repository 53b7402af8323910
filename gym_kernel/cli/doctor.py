"""``gym-kernel doctor``: what this machine can do, and what to install for the rest."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable

from gym_kernel import __version__
from gym_kernel.cli.probes import Finding, Gpu, compilers, cpu_name, find_gpus, software, torch_cuda_version
from gym_kernel.evaluator.cache import cache_dir
from gym_kernel.evaluator.device_choice import cuda_device_count
from gym_kernel.evaluator.fence_probe import probe_isolation

__all__ = ["add_parser"]

_INDENT = " " * 13
# A folder is named by a hash, and has this file when it is complete.
_PREPARED = "extensions/[0-9a-f]*/cpp.json"
_NO_GPU = "the driver shows no NVIDIA GPU (or CUDA_VISIBLE_DEVICES hides it)"
_CPU_TORCH = (
    "this torch is built for the CPU only: pip install torch from https://pytorch.org/get-started for CUDA"
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the program's parser."""
    parser = commands.add_parser(
        "doctor",
        help="say what works here",
        description="Look at this machine, and say what works and what to install.",
        epilog="Exit code: 0 if kernels can be evaluated here at all, else 1.",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    packages, tools, gpus = software(), compilers(), find_gpus()
    abilities = _abilities(packages, tools)
    print(f"gym-kernel {__version__}")
    _section("Software", map(_line, packages.values()))
    _section("Devices", _devices(gpus))
    _section("Compilers", map(_line, tools.values()))
    _section("Isolation", _isolation())
    _section("Caches", [_caches(), _headers()])
    _section("What works", map(_ability_line, abilities))
    return 0 if any(ability.ok for ability in abilities) else 1


def _abilities(packages: dict[str, Finding], tools: dict[str, Finding]) -> list[Finding]:
    device = Finding("GPU", cuda_device_count() > 0, "", _NO_GPU)
    build = Finding("torch for CUDA", bool(torch_cuda_version()), "", _CPU_TORCH)
    base = [packages["python"], packages["torch"], packages["triton"], packages["gymnasium"]]
    building = [tools["g++"], tools["ninja"], tools["Python.h"]]
    gpu = [device, build, packages["cuda-bindings"]]
    return [
        _ability("Triton on CPU", base),
        _ability("C++ on CPU", base + building),
        _ability("Triton on GPU", base + gpu + [tools["cc"], tools["Python.h"]]),
        _ability("CUDA C++ on GPU", base + gpu + building + [tools["nvcc"]]),
    ]


def _ability(name: str, needs: Iterable[Finding]) -> Finding:
    missing = [need for need in needs if not need.ok]
    return Finding(
        name, not missing, "", "".join(f"\n{_INDENT}{need.name}: {need.remedy}" for need in missing)
    )


def _devices(gpus: tuple[Gpu, ...]) -> list[str]:
    lines = [f"cpu      {cpu_name()}, {len(os.sched_getaffinity(0))} cores usable"]
    for gpu in gpus:
        lines.append(
            f"gpu {gpu.index:<4} {gpu.name}, {gpu.memory_mib} MiB, "
            f"compute capability {gpu.compute_capability}, driver {gpu.driver}"
        )
    count = cuda_device_count()
    return [*lines, f"cuda     {count} usable" if count else f"cuda     none: {_NO_GPU}"]


def _isolation() -> list[str]:
    try:
        report = probe_isolation()
    except OSError as error:
        return [f"unknown  trying it failed: {error}"]
    lines = [f"tier     {report.tier.value} (the strongest tier that works here)"]
    return [*lines, *(f"missing  {lack.layer.value}: {lack.text}" for lack in report.missing)]


def _caches() -> str:
    folder = cache_dir()
    ceilings = sorted(path.stem for path in folder.glob("ceilings/*.json"))
    measured = f"ceilings measured for {', '.join(ceilings)}" if ceilings else "no ceilings measured yet"
    return f"{folder} ({measured})"


def _headers() -> str:
    # Which torch and compilers a folder is for, only torch could tell, and importing it takes seconds.
    sets = len(list(cache_dir().glob(_PREPARED)))
    if sets:
        return f"headers for fast builds of C++ and CUDA prepared, for {sets} pair(s) of a torch and its compilers"
    return (
        "headers for fast builds of C++ and CUDA not prepared yet: the first evaluation of C++ begins with it, or "
        "python -m gym_kernel.evaluator.prepare_headers, about a minute"
    )


def _line(finding: Finding) -> str:
    mark = "ok      " if finding.ok else "missing "
    remedy = "" if finding.ok or not finding.remedy else f"; {finding.remedy}"
    return f"{mark} {finding.name} {finding.text}{remedy}"


def _ability_line(ability: Finding) -> str:
    return f"yes      {ability.name}" if ability.ok else f"no       {ability.name}{ability.remedy}"


def _section(title: str, lines: Iterable[str]) -> None:
    print(f"\n{title}")
    for line in lines:
        print(f"  {line}")
