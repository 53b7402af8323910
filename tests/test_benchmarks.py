"""The benchmarks of speed run on a CPU at their smallest settings, end to end, and say what they promise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.busy import busy_cores
from benchmarks.child import ChildFailed, run_child
from benchmarks.context_noise import Phase, phase_of, summary
from benchmarks.kernels import Kernel, Language, renamed
from benchmarks.readme_table import latency_table
from benchmarks.record import Ending, Step, carry_out
from benchmarks.throughput import Evaluated, Level, bound_by
from benchmarks.timed_env import PARTS
from benchmarks.triad import moved_bytes
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.verdict import StageTimes, Verdict

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 240
PNG = b"\x89PNG\r\n"
# The real one where the user names it, else one of the same layout that imports what it imports.
KERNELBENCH = os.environ.get("GYM_KERNEL_KERNELBENCH")
LAYOUT = {
    "src/kernelbench/__init__.py": "from . import utils\n",
    "src/kernelbench/utils.py": (
        "from dotenv import load_dotenv\nload_dotenv()\nfrom openai import OpenAI\nfrom litellm import completion\n"
    ),
    "src/kernelbench/eval.py": "def eval_kernel_against_ref(**named):\n    raise AssertionError('CUDA is needed')\n",
    "KernelBench/level1/19_ReLU.py": "",
    "KernelBench/level1/88_MinGPTNewGelu.py": "",
}


@dataclass(frozen=True)
class Run:
    """One run of a benchmark."""

    code: int
    printed: str
    report: dict[str, Any]


def run(name: str, folder: Path, *arguments: str) -> Run:
    command = [
        sys.executable,
        "-m",
        f"benchmarks.{name}",
        "--device",
        "cpu",
        "--out",
        str(folder),
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=LIMIT_S, check=False)
    reports = list(folder.glob("*-cpu.json"))
    assert len(reports) == 1, done.stdout + done.stderr
    assert reports[0].with_suffix(".png").read_bytes().startswith(PNG)
    report = json.loads(reports[0].read_text())
    assert {"benchmark", "date", "commit", "gym_kernel", "python", "device", "clocks", "settings"} <= set(
        report
    )
    assert {"name", "torch", "triton", "driver", "cuda"} <= set(report["device"])
    # There are no GPU's clocks on a CPU: NaN, which equals nothing.
    clocks = [
        report["clocks"][when][which] for when in ("start", "end") for which in ("sm_mhz", "memory_mhz")
    ]
    assert all(clock != clock for clock in clocks)
    return Run(done.returncode, done.stdout + done.stderr, report)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    if KERNELBENCH:
        return Path(KERNELBENCH)
    for name, text in LAYOUT.items():
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "checkout"


def test_latency_takes_steps_apart(tmp_path: Path) -> None:
    done = run("latency", tmp_path, "--steps", "2")
    assert done.code == 0, done.printed
    (row,) = done.report["rows"]
    assert (row["task"], row["steps"], len(row["samples_s"])) == ("relu", 2, 2)
    for times in (*row["samples_s"], row["first_step_s"]):
        assert sum(times[part] for part in PARTS) == pytest.approx(times["step_s"])
        assert all(times[part] >= 0 for part in PARTS)
    assert set(row["median_s"]) == set(row["quartiles_s"]) == {"step_s", *PARTS}
    low, high = row["quartiles_s"]["step_s"]
    assert low <= row["median_s"]["step_s"] <= high
    assert 0 < row["env_share"] <= row["own_share"] < 1
    assert row["first_reset_s"] > 0
    table = latency_table(tmp_path)
    assert "| relu |" in table
    assert "env (s)" in table.splitlines()[0]


def test_throughput_counts_and_says_what_bounds(tmp_path: Path) -> None:
    done = run("throughput", tmp_path, "--in-flight", "1", "2", "--seconds", "1")
    assert done.code == 0, done.printed
    assert [row["in_flight"] for row in done.report["rows"]] == [1, 2]
    for row in done.report["rows"]:
        assert row["statuses"] == {"correct": row["evaluations"]}
        assert row["evaluations"] == len(row["latencies_s"]) >= row["in_flight"]
        assert row["per_minute"] == pytest.approx(60 * row["evaluations"] / row["wall_s"])
        assert row["latency_median_s"] <= row["latency_p90_s"]
        assert 0 < row["lane_occupancy"] <= 1
        assert sum(row["stage_shares"].values()) <= 1
        assert row["bound_by"] in done.printed


def test_timing_accuracy_compares_all_conditions(tmp_path: Path) -> None:
    done = run("timing_accuracy", tmp_path, "--rows", "16", "--runs", "2")
    assert done.code == 0, done.printed
    (row,) = done.report["rows"]
    assert row["moved_bytes"] == moved_bytes(16)
    assert row["cupti_us"] is None
    assert row["judged_over_cupti"] is None
    assert len(row["quiet_us"]) == len(row["busy_us"]) == 2
    assert min(row["quiet_us"]) <= row["judged_us"] <= max(row["quiet_us"])
    assert row["gb_per_s"] == pytest.approx(row["moved_bytes"] / row["judged_us"] / 1000)
    assert row["fresh_over_warm"] == pytest.approx(row["fresh_us"] / row["judged_us"])
    assert row["busy_over_quiet"] > 0
    assert "| run to run |" in done.printed


def test_vs_kernelbench_says_that_it_needs_a_gpu(tmp_path: Path, checkout: Path) -> None:
    arguments = ["--kernelbench", str(checkout), "--rounds", "2", "--tasks", "relu"]
    done = run("vs_kernelbench", tmp_path / "out", *arguments)
    assert done.code == 0, done.printed
    (row,) = done.report["rows"]
    assert row["ours_median_s"] > 0
    assert len(row["ours_samples_s"]) == 2
    assert row["kernelbench_median_s"] is row["ratio"] is None
    # Asked once: what is missing stays missing.
    (theirs,) = row["kernelbench_runs"]
    assert theirs["answer"]["imported"]
    assert "needs a CUDA GPU" in theirs["needs"]
    assert "needs a CUDA GPU" in done.printed


def test_vs_kernelbench_wants_a_checkout(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.vs_kernelbench", "--kernelbench", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=LIMIT_S, check=False)
    assert done.returncode != 0
    assert "git clone https://github.com/ScalingIntelligence/KernelBench" in done.stderr


def test_what_kernelbench_lacks_is_named(tmp_path: Path) -> None:
    package = tmp_path / "src" / "kernelbench"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import a_library_that_nobody_has\n")
    done = run_child("benchmarks.kernelbench_process", [str(tmp_path), "", "", "triton", "30"], 30.0)
    assert not done.answer["imported"]
    assert "a_library_that_nobody_has" in done.answer["problem"]


def test_a_child_is_killed_in_time(tmp_path: Path) -> None:
    (tmp_path / "asleep.py").write_text("import time\nprint('going to sleep', flush=True)\ntime.sleep(60)\n")
    with pytest.raises(ChildFailed, match=r"killed after 2 s.*going to sleep"):
        run_child("asleep", [], 2.0, {"PYTHONPATH": str(tmp_path)})


def test_variants_are_distinct_and_keep_nothing_of_the_old_names() -> None:
    triton, cuda = Kernel("relu"), Kernel("mingpt_gelu", Language.CUDA)
    assert triton.variant(1) != triton.variant(2)
    assert "relu_kernel[" not in triton.variant(1)
    text = renamed(cuda.source, "x")
    assert "gelu_kernel_x(const float*" in text
    assert "gelu_kernel_x<<<" in text
    assert 'name="mingpt_gelu_cuda_x"' in text
    with pytest.raises(ValueError, match="no Triton kernel"):
        renamed("x = 1", "x")


@pytest.mark.parametrize(
    ("in_flight", "stages", "bound"),
    [
        (16, StageTimes(queue_s=8.0, load_s=1.0, correctness_s=0.7, timing_s=0.25), "lane"),
        (16, StageTimes(queue_s=8.0, load_s=3.8, correctness_s=0.1, timing_s=0.1), "compile slots"),
        (16, StageTimes(queue_s=8.0, load_s=1.0, correctness_s=0.1, timing_s=0.1), "worker supply"),
        (1, StageTimes(queue_s=0.1, load_s=0.5, correctness_s=0.3, timing_s=0.1), "submissions in flight"),
    ],
)
def test_what_bounds_a_level(in_flight: int, stages: StageTimes, bound: str) -> None:
    verdict = Verdict(
        Status.TIMEOUT, "relu", "id", "cpu", "process", reason="Stages alone matter.", stages=stages
    )
    assert bound_by(Level(in_flight, 1.0, (Evaluated(verdict, 1.0),)), compile_slots=4) == bound


def test_busy_loops_end_with_the_block_and_with_their_parent() -> None:
    with busy_cores(1) as count:
        assert count == 1
        assert len(_busy_loops(os.getpid())) == 1
    assert _busy_loops(os.getpid()) == []
    script = "import time, benchmarks.busy as b\nwith b.busy_cores(1):\n    print('up', flush=True)\n    time.sleep(60)"
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"up\n"
    (loop,) = _busy_loops(parent.pid)
    parent.kill()
    parent.communicate(timeout=30)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{loop}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{loop}").exists()


def _busy_loops(parent: int) -> list[int]:
    """Children of a process that were told to watch it."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [
        int(pid) for pid in children if Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"%d\0" % parent)
    ]


def test_a_result_of_the_old_benchmark_stays_in_the_table(tmp_path: Path) -> None:
    device = {"name": "Device"}
    old = {"device": device, "task": "relu", "steps": 3, "median_s": {"step_s": 1.0, "queue_s": 0.5}}
    (tmp_path / "step-latency-relu-device.json").write_text(json.dumps(old))
    assert "| relu | Device | 3 | 1.000 | 0.500 |" in latency_table(tmp_path)
    new = {"task": "relu", "steps": 9, "median_s": {"step_s": 2.0, "queue_s": 0.25}}
    (tmp_path / "latency-device.json").write_text(json.dumps({"device": device, "rows": [new]}))
    table = latency_table(tmp_path)
    assert "| relu | Device | 9 | 2.000 | 0.250 |" in table
    assert "1.000" not in table


def test_samples_beside_a_new_context_are_told_from_quiet_ones() -> None:
    phases = [Phase("context", 100, 200), Phase("idle", 200, 400), Phase("death", 380, 500)]
    assert [phase_of(*span, phases) for span in ((0, 90), (90, 110), (210, 220), (390, 395), (510, 520))] == [
        "quiet", "context", "idle", "death", "quiet"
    ]  # fmt: skip
    samples = [(start, start + 5, 300.0 if 95 < start < 200 else 100.0) for start in range(0, 1000, 10)]
    rows = {row["phase"]: row for row in summary(samples, phases)}
    assert (
        rows["quiet"]["median_ratio"] == rows["idle"]["median_ratio"] == rows["death"]["largest_ratio"] == 1
    )
    assert rows["context"]["median_ratio"] == 3
    assert sum(row["samples"] for row in rows.values()) == len(samples)


def test_context_noise_says_that_it_needs_a_gpu() -> None:
    command = [sys.executable, "-m", "benchmarks.context_noise", "--device", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=LIMIT_S, check=False)
    assert done.returncode == 1
    assert "There are contexts on a GPU only" in done.stderr


def record(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.record", "--device", "cpu", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=LIMIT_S, check=False)


def test_record_runs_steps_in_turn_and_keeps_what_they_say(tmp_path: Path) -> None:
    done = record("--only", "honest", "soak", "--minutes", 0.52, "--out", tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert [line.split(maxsplit=1)[0] for line in done.stdout.splitlines()[-2:]] == ["honest", "soak"]
    assert done.stdout.splitlines()[-1].endswith("not begun")
    report = json.loads((tmp_path / "corpus-honest-cpu.json").read_text())
    assert report["wrong"] == []
    assert "corpus-honest-cpu.json" in (tmp_path / "logs" / "honest.log").read_text()


def test_a_step_that_overstays_is_killed(tmp_path: Path) -> None:
    step = Step("relu", "throughput", ("--device", "cpu", "--tasks", "relu", "--in-flight", "1"), 60.0)
    outcome = carry_out(step, ["--seconds", "60", "--out", str(tmp_path)], tmp_path / "relu.log", 2.0)
    assert outcome.ending is Ending.KILLED
    assert not list(tmp_path.glob("*.png"))


def test_record_asks_for_the_checkout_that_its_steps_need(tmp_path: Path) -> None:
    done = record("--only", "vs_kernelbench", "--out", tmp_path)
    assert done.returncode == 2
    assert "--kernelbench" in done.stderr
