"""The README is kept true: its code runs, its tables are the results', what it names exists."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import suppress
from pathlib import Path
from typing import Any, get_type_hints

import gymnasium
import pytest

from benchmarks.readme_table import TABLES, with_tables
from gym_kernel.cli import main
from gym_kernel.envs.info import KernelInfo
from gym_kernel.evaluator.status import Status
from gym_kernel.tasks import load, suite_names

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md", "docs/verdicts.md")

RUNNABLE = re.compile(r"^<!-- run -->\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What is typed: lines of indented or fenced code, with or without a prompt.
TYPED = re.compile(r"^(?: {4}|\$ )?((?:make|gym-kernel|python -m|pip install) [^#;|\n]*)", re.MULTILINE)
LINK = re.compile(r"\]\(([\w./-]+)\)")


def section(title: str) -> str:
    """Text of one section of the README."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE)
    assert found, f"The README has no section {title!r}."
    return found[1]


def first_cells(text: str) -> list[str]:
    """Names in backquotes in the first column of a table."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([\w/]+)`", cell)]


def typed(program: str) -> set[str]:
    """Words typed after ``program`` anywhere in the pages."""
    lines = [line for page in PAGES for line in TYPED.findall((ROOT / page).read_text(encoding="utf-8"))]
    return {line.removeprefix(program).strip() for line in lines if line.startswith(f"{program} ")}


@pytest.fixture(scope="module")
def namespace() -> dict[str, Any]:
    """Names that the README's blocks share, as a reader who types them one after the other does."""
    return {"__name__": "readme"}


@pytest.fixture(scope="module", autouse=True)
def one_host() -> Iterator[None]:
    """Keep one evaluator for all blocks, and none after them."""
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu")
    env.reset(seed=0)
    yield
    env.close()


@pytest.mark.parametrize("number", range(len(RUNNABLE.findall(README))))
def test_code_runs_as_printed(
    number: int, namespace: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = RUNNABLE.findall(README)[number]
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    exec(compile(code.replace('device="auto"', 'device="cpu"'), f"README block {number}", "exec"), namespace)


def test_every_python_block_is_run_or_is_an_excerpt() -> None:
    assert len(re.findall(r"^```python$", README, re.MULTILINE)) == len(RUNNABLE.findall(README)) >= 4


@pytest.mark.parametrize("page", TABLES, ids=lambda page: page.name)
def test_tables_are_the_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_tables(text, TABLES[page]) == text


def test_every_status_is_explained() -> None:
    assert first_cells(section("Statuses")) == [status.value for status in Status]


def test_every_info_key_is_explained() -> None:
    explained = set(first_cells(section("Info")))
    of_wrappers = {"turn", "turns_left", "episode_return", "transcript_tokens", "policy_tokens"}
    assert explained == {*get_type_hints(KernelInfo), *of_wrappers}


def test_every_suite_and_task_is_listed() -> None:
    rows = [line.split("|")[1:3] for line in section("Tasks").splitlines() if line.startswith("| `pilot/")]
    listed = {suite.strip(" `"): re.findall(r"`(\w+)`", tasks) for suite, tasks in rows}
    assert listed == {
        name: [task.id for task in load(name)] for name in suite_names() if name.startswith("pilot/")
    }


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {word for words in typed("make") for word in words.split()}
    assert {"demo", "test"} <= named <= targets


def test_commands_exist(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {words.split()[0] for words in typed("gym-kernel")}
    assert {"doctor", "tasks", "evaluate"} <= commands
    for command in commands:
        with suppress(SystemExit):
            main([command, "--help"])
        assert f"gym-kernel {command}" in capsys.readouterr().out


def test_modules_and_extras_exist() -> None:
    modules = {words.split()[0] for words in typed("python -m")}
    modules |= set(re.findall(r"python -m ([\w.]+)", README))
    for module in modules - {"pytest"}:
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = re.findall(r"`\[(\w+)\]`", README)
    assert set(extras) <= set(settings["options.extras_require"])
    assert "gym-kernel = gym_kernel.cli:main" in settings["options.entry_points"]["console_scripts"]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    place = ROOT / page
    missing = [
        link for link in LINK.findall(place.read_text(encoding="utf-8")) if not (place.parent / link).exists()
    ]
    assert missing == []
