"""Mix hostile, broken and honest submissions at random from several envs at once, and account for what they leave.

    python -m benchmarks.soak [--device auto] [--submissions 300] [--envs 6] [--seed 0]

Checked: no wrong verdict, no hang, and before against after: processes, descriptors of the host and its judge, shared
memory, temporary files, GPU memory; and on a GPU that honest kernels take the time that they took before it all.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium
from tqdm import tqdm

from benchmarks.report import RESULTS, write_report
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.processes import children_of, descendants_of
from gym_kernel.tasks import load

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from corpus import Module, load_corpus  # noqa: E402

TIMEOUT_S = 12.0
# A submission may wait for all others; past this it hangs.
HANG_S = 600.0
BROKEN = {
    "empty": "",
    "prose": "I would rather not.",
    "syntax": "def broken(:\n",
    "no model": "import torch\n",
    "raises": "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        raise ValueError\n",
    "loops": "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        while True: pass\n",
    "exits": "import os, torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        os._exit(0)\n",
    "segfaults": "import ctypes, torch\nctypes.string_at(0)\nclass ModelNew(torch.nn.Module):\n    forward = None\n",
}


@dataclass(frozen=True)
class Footprint:
    """What this process and its family hold."""

    processes: int
    descriptors: int
    shared_gpu_memory_descriptors: int
    shared_memory_files: int
    temporary_files: int
    gpu_bytes: int


def footprint(on_gpu: bool) -> Footprint:
    """Count it all, once nothing moves any more."""
    members = [os.getpid(), *descendants_of(os.getpid())]
    # Workers come and go; the host and its judges stay.
    keepers = [os.getpid(), *children_of(os.getpid())]
    for host in children_of(os.getpid()):
        keepers += children_of(host)[:1]
    open_files = [target for pid in keepers for target in _descriptors(pid)]
    # The judge keeps shared memory for the next submission, as much as its pool may hold.
    gpu_memory = sum("nvidia" in target for target in open_files)
    return Footprint(
        processes=len(members),
        descriptors=len(open_files) - gpu_memory,
        shared_gpu_memory_descriptors=gpu_memory,
        shared_memory_files=len(os.listdir("/dev/shm")),
        temporary_files=sum(len(files) for _, _, files in os.walk(tempfile.gettempdir())),
        gpu_bytes=_gpu_bytes() if on_gpu else 0,
    )


def settled_footprint(on_gpu: bool, limit_s: float = 20.0) -> Footprint:
    """The footprint after workers have died and their replacements stand by."""
    deadline = time.monotonic() + limit_s
    last = footprint(on_gpu)
    while time.monotonic() < deadline:
        time.sleep(1.0)
        now = footprint(on_gpu)
        if now == last:
            return now
        last = now
    return last


def _descriptors(pid: int) -> list[str]:
    """What a process has open."""
    targets = []
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                targets.append(os.readlink(entry.path))
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return targets
    return targets


def _gpu_bytes() -> int:
    """Memory in use on all GPUs together."""
    import pynvml

    pynvml.nvmlInit()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
    return sum(int(pynvml.nvmlDeviceGetMemoryInfo(handle).used) for handle in handles)


@dataclass(frozen=True)
class Job:
    """One submission of the soak."""

    name: str
    sort: str
    task: str
    code: str
    module: Module | None


@dataclass(frozen=True)
class Done:
    """What became of it."""

    job: Job
    status: str
    reward: float
    runtime_us: float
    seconds: float

    @property
    def is_wrong(self) -> bool:
        """Whether an honest kernel was refused or anything else rewarded."""
        if self.job.sort == "honest":
            return self.status != "correct"
        truly = self.job.module is not None and self.job.module.is_timed_truly(self.runtime_us)
        return self.status in ("correct", "infrastructure_error") and not truly


def jobs(kind: str, count: int, rng: random.Random, tasks: set[str]) -> list[Job]:
    """Draw the submissions: two fifths honest, two fifths hostile, the rest broken."""

    def fitting(folder: str) -> list[Module]:
        found = load_corpus(ROOT / "tests" / folder)
        return [m for m in found if kind in m.devices and not m.slow and not m.gap and m.task in tasks]

    honest, hostile = fitting("honest"), fitting("exploits")
    drawn = []
    for _ in range(count):
        sort = rng.choices(("honest", "hostile", "broken"), (2, 2, 1))[0]
        if sort == "broken":
            name = rng.choice(list(BROKEN))
            drawn.append(Job(name, sort, rng.choice(sorted(tasks)), BROKEN[name], None))
        else:
            module = rng.choice(honest if sort == "honest" else hostile)
            drawn.append(Job(module.name, sort, module.task, module.code, module))
    return drawn


class Envs:
    """A few environments, each used by one thread at a time."""

    def __init__(self, count: int, device: str, timeout_s: float) -> None:
        self._idle = [
            gymnasium.make("gym_kernel:KernelEnv-v0", tasks="pilot", device=device, timeout_s=timeout_s)
            for _ in range(count)
        ]
        self._all = list(self._idle)
        self._mutex = threading.Lock()

    def play(self, job: Job) -> Done:
        """One episode."""
        with self._mutex:
            env = self._idle.pop()
        try:
            env.reset(options={"task": job.task})
            started = time.monotonic()
            _, reward, _, _, info = env.step(job.code)
            return Done(job, info["status"], float(reward), info["runtime_us"], time.monotonic() - started)
        finally:
            with self._mutex:
                self._idle.append(env)

    def close(self) -> None:
        """Close them all."""
        for env in self._all:
            env.close()


def play_before(deadline: float, envs: Envs, job: Job) -> Done | None:
    """One episode; ``None`` where ``time.monotonic()`` is past the deadline already."""
    return None if time.monotonic() > deadline else envs.play(job)


def honest_times(envs: Envs, tasks: list[str], repeats: int = 3) -> dict[str, float]:
    """Median time of each task's example kernel, in microseconds."""
    times = {}
    for task in tasks:
        code = (ROOT / "examples" / "kernels" / f"{task}.py").read_text()
        runs = [envs.play(Job(task, "honest", task, code, None)) for _ in range(repeats)]
        times[task] = median(run.runtime_us for run in runs)
    return times


def warm_up(envs: Envs, tasks: list[str], at_once: int) -> None:
    """Let the judge make what it keeps: references, shared memory for as many evaluations as run at once."""
    for task in tasks:
        code = (ROOT / "examples" / "kernels" / f"{task}.py").read_text()
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(envs.play, [Job(task, "honest", task, code, None)] * at_once))


def main() -> None:
    """Run the soak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--submissions", type=int, default=300)
    parser.add_argument("--envs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT_S,
        help="seconds for one submission; those that hang hold the device",
    )
    parser.add_argument("--tasks", nargs="*", default=[task.id for task in load("pilot")])
    parser.add_argument(
        "--limit", type=float, default=math.inf, help="seconds from the start after which none is begun"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    deadline = time.monotonic() + options.limit
    tempfile.tempdir = tempfile.mkdtemp(prefix="soak-")
    os.environ["TMPDIR"] = tempfile.tempdir
    envs = Envs(options.envs, options.device, options.timeout)
    keeper = Evaluator(EvaluatorConfig(device=options.device))
    done: list[Done] = []
    try:
        facts = keeper.brief(load(options.tasks[0])[0]).device
        timed = options.tasks[:3] if facts.is_cuda else []
        warm_up(envs, options.tasks, options.envs)
        before_us = honest_times(envs, timed)
        before = settled_footprint(facts.is_cuda)
        drawn = jobs(
            "cuda" if facts.is_cuda else "cpu",
            options.submissions,
            random.Random(options.seed),
            set(options.tasks),
        )
        with ThreadPoolExecutor(options.envs) as pool:
            futures = [pool.submit(play_before, deadline, envs, job) for job in drawn]
            for future in tqdm(as_completed(futures), total=len(futures), desc="submissions", disable=None):
                played = future.result()
                if played is None:
                    continue
                done.append(played)
                if done[-1].is_wrong:
                    tqdm.write(f"WRONG {done[-1].job.sort} {done[-1].job.name}: {done[-1].status}")
        after = settled_footprint(facts.is_cuda)
        after_us = honest_times(envs, timed)
    finally:
        envs.close()
        keeper.close()
    survivors = descendants_of(os.getpid())
    left_files = [str(path) for path in Path(tempfile.tempdir).rglob("*")]
    body: dict[str, Any] = {
        "submissions": len(done),
        "envs": options.envs,
        "seed": options.seed,
        "statuses": {
            sort: dict(Counter(d.status for d in done if d.job.sort == sort))
            for sort in ("honest", "hostile", "broken")
        },
        "wrong": [{"sort": d.job.sort, "name": d.job.name, "status": d.status} for d in done if d.is_wrong],
        "hangs": sum(d.seconds > HANG_S for d in done),
        "longest_s": max(d.seconds for d in done),
        "before": asdict(before),
        "after": asdict(after),
        "after_close": {"processes": len(survivors), "temporary_files": len(left_files)},
        "honest_us_before": before_us,
        "honest_us_after": after_us,
    }
    for name in ("statuses", "wrong", "hangs", "longest_s", "before", "after", "after_close"):
        print(f"{name}: {body[name]}")
    for task, time_us in before_us.items():
        print(f"{task}: {time_us:.2f} us before, {after_us[task]:.2f} us after")
    print(write_report("soak", facts, body, options.out))
    grew = after.processes > before.processes or after.descriptors > before.descriptors + 2
    sys.exit(1 if body["wrong"] or body["hangs"] or survivors or left_files or grew else 0)


if __name__ == "__main__":
    main()
