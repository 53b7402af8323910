"""How long a warm ``env.step`` takes, and where the time goes.

    python -m benchmarks.step_latency [--device auto] [--task relu] [--steps 15]

Every step submits a different source text, so nothing that was compiled before can be found again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

import gymnasium
from tqdm import tqdm

from benchmarks.report import RESULTS, write_report
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.record import RECORD_FILE
from gym_kernel.tasks import load

KERNELS = Path(__file__).parents[1] / "examples" / "kernels"
# Names of the parts in a record's stages, and what they are called in ``info``.
PARTS = {
    "queue_s": "queue_s",
    "load_s": "compile_s",
    "correctness_s": "correctness_s",
    "timing_s": "timing_s",
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--task", default="relu")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    source = (KERNELS / f"{options.task}.py").read_text()
    record_dir = tempfile.TemporaryDirectory()
    env = gymnasium.make(
        "gym_kernel:KernelEnv-v0", tasks=options.task, device=options.device, record_dir=record_dir.name
    )
    # Shares the env's host; only asked for facts.
    evaluator = Evaluator(EvaluatorConfig(device=options.device))
    try:
        env.reset(seed=0)
        facts = evaluator.brief(load(options.task)[0]).device
        env.step(source)
        samples: list[dict[str, float]] = []
        for number in tqdm(range(options.steps), desc="steps"):
            env.reset()
            kernel = source.replace("_kernel", f"_kernel_{number}")
            started = time.perf_counter()
            feedback, _, _, _, info = env.step(kernel)
            step_s = time.perf_counter() - started
            if info["status"] != "correct":
                raise SystemExit(feedback)
            line = (Path(record_dir.name) / RECORD_FILE).read_text().splitlines()[-1]
            stages = json.loads(line)["verdict"]["stages"]
            parts = {name: stages[stage] for stage, name in PARTS.items()}
            samples.append({"step_s": step_s, **parts, "evaluate_s": stages["total_s"]})
    finally:
        env.close()
        record_dir.cleanup()
        evaluator.close()
    medians = {name: median(sample[name] for sample in samples) for name in samples[0]}
    for name, value in medians.items():
        print(f"{name:14} {value * 1000:9.2f} ms")
    body = {"task": options.task, "steps": options.steps, "median_s": medians, "samples_s": samples}
    print(write_report(f"step-latency-{options.task}", facts, body, options.out))


if __name__ == "__main__":
    main()
