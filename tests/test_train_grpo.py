"""``examples/train_grpo.py`` from the command line to the adapter, with a tiny policy and real evaluations."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("trl")
pytest.importorskip("peft")

from safetensors.torch import load_file
from tiny_policy import GOOD, WRONG, in_a_fence, in_a_tool_call, save_policy

SCRIPT = Path(__file__).parents[1] / "examples" / "train_grpo.py"
KEYS = {
    "update",
    "seconds",
    "reward_mean",
    "reward_std",
    "correct_rate",
    "solved_rate",
    "compile_rate",
    "lost_rate",
    "speedup",
    "tokens_per_episode",
    "tokens_total",
    "loss",
    "grad_norm",
    "learning_rate",
}

pytestmark = pytest.mark.usefixtures("warm_evaluator")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_grpo", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(tmp_path_factory.mktemp("policy"), [in_a_fence(GOOD), in_a_fence(WRONG)])


def arguments(policy: Path, output: Path, updates: int, *more: str) -> list[str]:
    settings = {
        "--model": policy,
        "--tasks": "relu",
        "--device": "cpu",
        "--group-size": 2,
        "--turn-tokens": 8,
        "--micro-batch": 2,
        "--save-every": 1,
        "--learning-rate": 0.01,
        "--updates": updates,
        "--output": output,
    }
    return [str(each) for pair in settings.items() for each in pair] + list(more)


def read(output: Path) -> list[dict[str, Any]]:
    lines = (output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_run_can_be_interrupted_and_resumed(example: ModuleType, policy: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    example.main(arguments(policy, output, 1))
    first = read(output)
    assert [row["update"] for row in first] == [1]
    assert set(first[0]) == KEYS
    assert first[0]["compile_rate"] == 1.0
    assert first[0]["lost_rate"] == 0.0
    assert first[0]["tokens_per_episode"] == 4.0
    assert first[0]["seconds"] > 0

    # As if the run had been killed after its second update, before a checkpoint.
    with (output / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"update": 2, "lost": True}) + "\n")
    example.main(arguments(policy, output, 2, "--resume"))
    rows = read(output)
    assert rows[0] == first[0]
    assert [row["update"] for row in rows] == [1, 2]
    assert set(rows[1]) == KEYS
    assert rows[1]["tokens_total"] > rows[0]["tokens_total"]

    weights = load_file(output / "adapter" / "adapter_model.safetensors")
    config = json.loads((output / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    assert (config["r"], config["lora_alpha"]) == (16, 32)
    assert sorted(each.name for each in output.glob("checkpoint-*")) == ["checkpoint-1", "checkpoint-2"]
    assert first[0]["grad_norm"] > 0
    # LoRA's B starts at zero.
    assert any(each.abs().sum() > 0 for name, each in weights.items() if "lora_B" in name)


def test_the_tool_loop_trains_too(example: ModuleType, tmp_path: Path) -> None:
    policy = save_policy(tmp_path / "policy", [in_a_tool_call(GOOD), in_a_tool_call(WRONG)])
    output = tmp_path / "run"
    example.main(arguments(policy, output, 1, "--path", "environment"))
    (row,) = read(output)
    assert set(row) == KEYS
    # Two submissions and the message after the last feedback, each with the end of its turn.
    assert row["tokens_per_episode"] == 6.0
    assert row["compile_rate"] == 1.0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--group-size", "1"], "at least 2"),
        (["--updates", "0"], "--updates must be at least 1"),
        (["--micro-batch", "3"], "must divide"),
        (["--path", "elsewhere"], "invalid choice"),
    ],
)
def test_arguments_are_checked_first(
    example: ModuleType,
    policy: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    words: str,
) -> None:
    with pytest.raises(SystemExit):
        example.main(arguments(policy, tmp_path / "run", 1, *more))
    assert words in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_overwritten_nor_resumed_from_nothing(
    example: ModuleType, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="no checkpoint to resume from"):
        example.main(arguments(policy, tmp_path, 1, "--resume"))
    (tmp_path / "metrics.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit):
        example.main(arguments(policy, tmp_path, 1))
    assert "holds another run" in capsys.readouterr().err


def test_an_unknown_suite_is_named(example: ModuleType, policy: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="pilot/nowhere"):
        example.main(arguments(policy, tmp_path / "run", 1, "--tasks", "pilot/nowhere"))


def test_help_says_where_to_judge(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        example.main(["--help"])
    assert "Give evaluation a GPU of its own" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("library", ["trl", "peft"])
def test_a_missing_library_is_named(library: str) -> None:
    code = f"import runpy, sys; sys.modules[{library!r}] = None; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert found.returncode == 1
    assert "pip install 'gym-kernel[trl]'" in found.stderr
    assert "Traceback" not in found.stderr
