"""The command line, with the real evaluator on the CPU."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from gym_kernel import __version__
from gym_kernel.cli import main
from gym_kernel.envs.info import KernelInfo

KERNEL = str(Path(__file__).parents[1] / "examples" / "kernels" / "relu.py")


def test_version_and_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"gym-kernel {__version__}\n"
    for wrong in ([], ["nonsense"], ["evaluate", "relu"]):
        with pytest.raises(SystemExit, match="2"):
            main(wrong)


def test_tasks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks"]) == 0
    everything = capsys.readouterr().out
    assert main(["tasks", "pilot/heldout"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["TASK", "softmax", "log_softmax", "mingpt_gelu"]
    assert all(line.split()[0] in everything for line in lines)


def test_tasks_are_listed_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "relu", "--json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)
    assert (task["id"], task["suite"]) == ("relu", "pilot/train")
    assert "class Model" in task["source"]
    assert set(task["sizes"]) <= {"official", "small"}


def test_doctor_says_what_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for needed in ("Software", "Devices", "Compilers", "Isolation", "Caches", "What works", "Triton on CPU"):
        assert needed in out


def test_doctor_names_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CXX", "CC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "missing  g++ not found; install a C++ compiler" in out
    assert "no       C++ on CPU\n" in out


def test_doctor_says_whether_headers_are_prepared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GYM_KERNEL_CACHE", str(tmp_path))
    assert main(["doctor"]) == 0
    assert "not prepared yet" in (out := capsys.readouterr().out)
    assert "python -m gym_kernel.evaluator.prepare_headers" in out
    folder = tmp_path / "extensions" / "0123456789abcdef"
    folder.mkdir(parents=True)
    (folder / "cpp.json").write_text("[]", encoding="utf-8")
    assert main(["doctor"]) == 0
    assert "builds of C++ and CUDA prepared, for 1 pair(s)" in capsys.readouterr().out


def test_an_unknown_option_shows_the_usage_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["doctor", "--json"])
    err = capsys.readouterr().err
    assert err.startswith("usage: gym-kernel doctor ")
    assert "unrecognized arguments: --json" in err


def test_doctor_is_quick_because_it_imports_no_torch() -> None:
    code = "import sys; from gym_kernel.cli import main; main(['doctor']); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["relux", KERNEL], "Did you mean 'relu'"),
        (["pilot", KERNEL], "is a suite"),
        (["relu", "/nonexistent.py"], "Cannot read /nonexistent.py"),
        (["relu", KERNEL, "--device", "tpu"], "'tpu'"),
        (["relu", KERNEL, "--timeout-s", "-1"], "timeout_s"),
        (["relu", KERNEL, "--device", "cuda:99"], "cuda:99"),
    ],
)
def test_what_cannot_be_met_is_said_in_a_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *words]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


@pytest.mark.usefixtures("warm_evaluator")
class TestEvaluate:
    def test_a_correct_kernel(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        assert main(["evaluate", "relu", KERNEL, "--device", "cpu", "--record-dir", str(tmp_path)]) == 0
        captured = capsys.readouterr()
        assert captured.out.startswith("Verdict: correct.")
        assert captured.err == ""
        assert any(tmp_path.iterdir())

    def test_a_correct_kernel_for_programs(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["evaluate", "relu", KERNEL, "--device", "cpu", "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert set(result) == {*get_type_hints(KernelInfo), "feedback"}
        assert result["correct"] is True

    def test_junk(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        junk = tmp_path / "junk.py"
        junk.write_bytes(bytes(range(256)))
        assert main(["evaluate", "relu", str(junk), "--device", "cpu", "--json"]) == 1
        result = json.loads(capsys.readouterr().out)
        assert (result["status"], result["runtime_us"]) == ("rejected", None)

    def test_standard_input(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"```python\nx = 1\n```")))
        assert main(["evaluate", "relu", "-", "--device", "cpu"]) == 1
        assert capsys.readouterr().out.startswith("Verdict: rejected")
