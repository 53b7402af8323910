"""The pages about training loops are kept true: their code runs as printed, what they name exists."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOOPS = ROOT / "docs" / "loops"
PAGES = sorted(page.name for page in LOOPS.glob("*.md"))

RUNNABLE = re.compile(r"^<!-- run(?:: (\w+))? -->\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([\w./-]+)\)")

pytestmark = pytest.mark.usefixtures("warm_evaluator")


def text_of(page: str) -> str:
    return (LOOPS / page).read_text(encoding="utf-8")


@pytest.fixture
def run_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a page's blocks one after the other as a reader would, in a folder with the examples, on the CPU."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)

    def run(page: str, library: str = "", replaced: dict[str, str] | None = None) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": "page"}
        blocks = [code for needs, code in RUNNABLE.findall(text_of(page)) if needs == library]
        assert blocks, f"{page} has no code to run."
        # A whole page is one text, so that what is replaced must stand in it.
        code = "\n".join(blocks)
        for old, new in (replaced or {}).items():
            assert old in code, f"{page} does not say {old!r}."
            code = code.replace(old, new)
        exec(compile(code.replace('device="auto"', 'device="cpu"'), page, "exec"), names)
        return names

    return run


def test_gymnasium_vector(run_page: Any) -> None:
    names = run_page("gymnasium-vector.md")
    assert names["advantages"].shape == (2, 2, 2)


def test_sb3(run_page: Any) -> None:
    pytest.importorskip("stable_baselines3")
    assert run_page("sb3.md")["reward"] > 0.3


def test_trl(run_page: Any, tmp_path: Path) -> None:
    pytest.importorskip("trl")
    pytest.importorskip("peft")
    from tiny_policy import GOOD, NO_KERNEL, in_a_fence, save_policy

    folder = save_policy(tmp_path / "tiny", [in_a_fence(GOOD), in_a_fence(NO_KERNEL)])
    assert "For a dry run on a CPU set `model` to a folder" in text_of("trl.md")
    dry = {'"Qwen/Qwen2.5-Coder-7B-Instruct"': repr(str(folder)), "updates = 16": "updates = 1"}
    dry["use_cpu = False"] = "use_cpu = True"
    names = run_page("trl.md", replaced=dry)
    log = {key: value for entry in names["trainer"].state.log_history for key, value in entry.items()}
    assert log["kernel/submissions"] == 2.0
    assert (tmp_path / "trained" / "adapter_model.safetensors").is_file()


def test_openenv(run_page: Any, tmp_path: Path) -> None:
    pytest.importorskip("openenv.core")
    from serving import serving

    (tmp_path / "server").mkdir()
    with serving(tmp_path / "server", "--tasks", "pilot", "--turns", "2") as server:
        names = run_page("openenv.md", replaced={"http://127.0.0.1:8000": server.url})
    assert names["result"].observation.turn == 2


@pytest.mark.parametrize("library", sorted({needs for needs, _ in RUNNABLE.findall(text_of("others.md"))}))
def test_others(run_page: Any, library: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    names = run_page("others.md", library)
    if library == "skyrl_gym":
        env = names["skyrl_gym"].make("kernel", extras={"task": "relu"})
        assert "(relu)" in env.init([])[0][0]["content"]
        assert env.step("no code")["reward"] == 0.0
        assert env.step("no code")["done"] is True
        env.close()


@pytest.mark.parametrize("page", PAGES)
def test_every_python_block_parses_and_is_marked_to_run(page: str) -> None:
    blocks = PYTHON.findall(text_of(page))
    assert blocks == [code for _, code in RUNNABLE.findall(text_of(page))]
    for code in blocks:
        ast.parse(code)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    assert [link for link in LINK.findall(text_of(page)) if not (LOOPS / link).exists()] == []


def test_programs_and_their_options_exist() -> None:
    for page in PAGES:
        for program, words in re.findall(r"^    python (examples/\S+)(.*)$", text_of(page), re.MULTILINE):
            source = (ROOT / program).read_text(encoding="utf-8")
            assert [word for word in re.findall(r"--[\w-]+", words) if f'"{word}"' not in source] == []
