"""The Dockerfile, as far as it can be checked without an engine, and ``openenv.yaml`` beside it."""

from __future__ import annotations

import fnmatch
import importlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

import pytest
from serving import ROOT, serving

from gym_kernel.cli import main

INSTRUCTIONS = set(
    "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN SHELL STOPSIGNAL USER VOLUME WORKDIR".split()
)
SETTINGS = ConfigParser()
SETTINGS.read(ROOT / "setup.cfg", encoding="utf-8")


@dataclass(frozen=True)
class Instruction:
    """One instruction: its name, and the rest of its lines in one."""

    name: str
    rest: str


def instructions() -> list[Instruction]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    logical = re.sub(r"\\\n\s*", " ", lines).splitlines()
    return [Instruction(*line.split(maxsplit=1)) for line in logical if line.strip()]


def rests(name: str) -> list[str]:
    return [instruction.rest for instruction in instructions() if instruction.name == name]


def only(name: str) -> str:
    (rest,) = rests(name)
    return rest


def is_sent(path: str) -> bool:
    """Whether ``.dockerignore`` lets a file go to the engine: the last pattern that matches it or a parent decides."""
    parts = path.split("/")
    prefixes = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    sent = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        wanted = pattern.removeprefix("!")
        alternatives = [wanted, wanted.removeprefix("**/")]
        names = [prefix for prefix in prefixes if "/" in wanted or "/" not in prefix]
        if any(fnmatch.fnmatchcase(name, alternative) for name in names for alternative in alternatives):
            sent = pattern.startswith("!")
    return sent


def test_instructions_are_known_and_begin_with_from() -> None:
    found = instructions()
    assert {instruction.name for instruction in found} <= INSTRUCTIONS
    assert found[0].name == "FROM"


def test_the_base_image_is_pinned_and_has_a_compiler_for_cuda() -> None:
    assert re.fullmatch(r"nvidia/cuda:\d+\.\d+\.\d+-devel-ubuntu24\.04", only("FROM"))


def test_torch_is_new_enough() -> None:
    arguments = dict(rest.split("=", 1) for rest in rests("ARG"))
    least = re.search(r"^torch>=(.+)$", SETTINGS["options"]["install_requires"], re.MULTILINE)
    assert least
    assert version(arguments["TORCH_VERSION"]) >= version(least[1])


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def test_what_is_copied_exists_and_is_sent() -> None:
    copied = [rest.split() for rest in rests("COPY")]
    assert copied
    for *sources, _ in copied:
        for source in sources:
            place = ROOT / source
            files = [place] if place.is_file() else [path for path in place.rglob("*.py") if path.is_file()]
            assert files, source
            assert any(is_sent(str(path.relative_to(ROOT))) for path in files), source


def test_only_what_is_needed_is_sent() -> None:
    needed = [
        "gym_kernel/evaluator/judge.py",
        "gym_kernel/py.typed",
        "examples/kernels/relu.py",
        "setup.cfg",
    ]
    assert all((ROOT / path).is_file() for path in needed)
    assert [path for path in needed if not is_sent(path)] == []
    private = [
        ".git/config",
        ".venv/bin/python",
        "tests/corpus.py",
        "examples/demo.py",
        "gym_kernel/__pycache__/x.pyc",
    ]
    assert [path for path in private if is_sent(path)] == []


def test_the_package_built_from_what_is_sent_is_whole(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77")
    context = tmp_path / "context"
    for source in ("LICENSE", "README.md", "pyproject.toml", "setup.cfg", "gym_kernel"):
        place = ROOT / source
        for path in [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]:
            name = path.relative_to(ROOT)
            if is_sent(str(name)):
                (context / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, context / name)
    words = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(tmp_path),
        str(context),
    ]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    installed = {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".py")}
    written = {str(path.relative_to(ROOT)) for path in (ROOT / "gym_kernel").rglob("*.py")}
    assert sorted(written - installed) == []


def test_extras_and_python_are_those_of_the_package() -> None:
    installed = re.search(r'pip install "\.\[([\w,]+)\]"', " ".join(rests("RUN")))
    assert installed
    extras = set(installed[1].split(","))
    assert "openenv" in extras
    assert extras <= set(SETTINGS["options.extras_require"])
    python = re.search(r"python(3\.\d+) -m venv", " ".join(rests("RUN")))
    assert python
    assert f"Programming Language :: Python :: {python[1]}" in SETTINGS["metadata"]["classifiers"]


def test_it_runs_as_an_ordinary_user() -> None:
    assert re.fullmatch(r"[1-9]\d*(:[1-9]\d*)?", rests("USER")[-1])


def test_the_command_is_the_server_on_the_exposed_port(capsys: pytest.CaptureFixture[str]) -> None:
    command = json.loads(only("ENTRYPOINT"))
    assert command == ["gym-kernel", "serve", "--host", "0.0.0.0"]
    with pytest.raises(SystemExit, match="0"):
        main(["serve", "--help"])
    listed = capsys.readouterr().out
    assert re.search(rf"--port.+\(default: {only('EXPOSE')}\)", " ".join(listed.split()))
    assert main([*command[1:], "--tasks", "relux"]) == 2
    assert "Did you mean 'relu'" in capsys.readouterr().err


def test_the_health_check_tells_a_server_from_none(tmp_path: Path) -> None:
    pytest.importorskip("openenv.core", reason="needs the extra [openenv]")
    name, command = only("HEALTHCHECK").split(" CMD ")
    assert "--start-period" in name
    python, *words = json.loads(command)
    assert python == "python"
    with serving(tmp_path, "--tasks", "relu") as server:
        address = f"http://127.0.0.1:{only('EXPOSE')}"
        assert address in words[-1]
        check = [sys.executable, *words[:-1], words[-1].replace(address, server.url)]
        assert subprocess.run(check, timeout=60, capture_output=True).returncode == 0
        server.end()
        assert subprocess.run(check, timeout=60, capture_output=True).returncode != 0


def test_openenv_yaml_names_the_application_and_the_port() -> None:
    yaml = pytest.importorskip("yaml")
    pytest.importorskip("openenv.core", reason="needs the extra [openenv]")
    manifest = yaml.safe_load((ROOT / "openenv.yaml").read_text(encoding="utf-8"))
    assert (manifest["spec_version"], manifest["runtime"]) == (1, "fastapi")
    assert manifest["port"] == int(only("EXPOSE"))
    module, attribute = manifest["app"].split(":")
    application = getattr(importlib.import_module(module), attribute)
    assert {"/ws", "/health", "/reset"} <= {getattr(route, "path", "") for route in application.routes}
