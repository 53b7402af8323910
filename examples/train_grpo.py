"""Train a language model to write GPU kernels: Dr. GRPO with LoRA, two submissions an episode.

    python examples/train_grpo.py --model Qwen/Qwen2.5-Coder-7B-Instruct --device cuda:1 --output runs/first

Trains on the first visible GPU, or on the CPU, and judges on ``--device``. Needs ``pip install gym-kernel[trl]``.
Writes ``metrics.jsonl``, a line for each update, and checkpoints to ``--output``; ``--resume`` goes on from the last.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    import peft
    import torch
    import trl
    from transformers import AutoTokenizer, TrainerCallback
    from transformers.trainer_utils import get_last_checkpoint

    from gym_kernel.integrations.trl import (
        environment_factory,
        kernel_return,
        log_outcomes,
        prompt_dataset,
        rollout_func,
    )
except ImportError as error:
    sys.exit(f"{error}\nTraining needs TRL and PEFT: pip install 'gym-kernel[trl]'")

from gym_kernel import GymKernelError

if TYPE_CHECKING:
    import datasets

DISCOUNT = 0.4
# Room for feedback and the chat's headers in each turn, beside the reply's own tokens.
FEEDBACK_TOKENS = 2_048

METRICS = {
    "reward_mean": "reward",
    "reward_std": "reward_std",
    "correct_rate": "kernel/correct_rate",
    "solved_rate": "kernel/solved_rate",
    "compile_rate": "kernel/compile_rate",
    "lost_rate": "kernel/lost_rate",
    "speedup": "kernel/speedup",
    "tokens_per_episode": "completions/mean_length",
    "tokens_total": "num_tokens",
    "loss": "loss",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add(
        "--model",
        default="Qwen/Qwen2.5-Coder-7B-Instruct",
        help="name or folder of a causal model with a chat template",
    )
    add("--tasks", default="pilot/train", help="suite or task id to train on (default: %(default)s)")
    add(
        "--device",
        default="auto",
        help="where kernels are judged: cpu, cuda:1, ... Give evaluation a GPU of its own: a trainer on the same "
        "GPU, which is cuda:0, stretches the times that make the reward. auto: cuda:1 where there are two GPUs",
    )
    add(
        "--path",
        choices=("rollout", "environment"),
        default="rollout",
        help="rollout: replies in plain text, a batch judged at once; environment: TRL's tool calls, judged one "
        "after another (default: %(default)s)",
    )
    add("--group-size", type=int, default=4, help="episodes of a task in an update (default: %(default)s)")
    add("--groups", type=int, default=1, help="tasks in an update (default: %(default)s)")
    add("--updates", type=int, default=16, help="updates in all (default: %(default)s)")
    add("--turns", type=int, default=2, help="submissions an episode (default: %(default)s)")
    add("--turn-tokens", type=int, default=2_048, help="longest reply, in tokens (default: %(default)s)")
    add("--micro-batch", type=int, default=1, help="episodes in one backward pass (default: %(default)s)")
    add("--temperature", type=float, default=0.8, help="of sampling (default: %(default)s)")
    add("--learning-rate", type=float, default=1e-5, help="of AdamW (default: %(default)s)")
    add("--seed", type=int, default=42, help="of sampling and of the order of tasks (default: %(default)s)")
    add("--output", type=Path, default=Path("runs/grpo"), help="folder for results (default: %(default)s)")
    add("--save-every", type=int, default=4, help="updates between checkpoints (default: %(default)s)")
    add("--resume", action="store_true", help="go on from the last checkpoint in --output")
    return checked(parser, parser.parse_args(argv))


def checked(parser: argparse.ArgumentParser, args: argparse.Namespace) -> argparse.Namespace:
    for name in ("groups", "updates", "turns", "turn_tokens", "micro_batch", "save_every"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1.")
    if args.group_size < 2:
        parser.error("--group-size must be at least 2: episodes of a group are compared with each other.")
    if (args.group_size * args.groups) % args.micro_batch:
        parser.error("--micro-batch must divide the episodes of an update, --group-size times --groups.")
    if not args.resume and (args.output / "metrics.jsonl").exists():
        parser.error(f"{args.output} holds another run: pass --resume to go on with it, or another --output.")
    return args


def grpo_config(args: argparse.Namespace, on_gpu: bool) -> trl.GRPOConfig:
    """Dr. GRPO: advantages less the group's mean and divided by nothing, losses by a constant, no KL term."""
    config = trl.GRPOConfig(
        output_dir=str(args.output),
        loss_type="dr_grpo",
        scale_rewards="none",
        beta=0.0,
        num_generations=args.group_size,
        per_device_train_batch_size=args.micro_batch,
        gradient_accumulation_steps=args.group_size * args.groups // args.micro_batch,
        max_steps=args.updates,
        # The constant of the loss, and in the tool loop the limit of a whole episode.
        max_completion_length=args.turns * (args.turn_tokens + FEEDBACK_TOKENS),
        generation_kwargs={"max_new_tokens": args.turn_tokens},
        max_tool_calling_iterations=args.turns,
        temperature=args.temperature,
        learning_rate=args.learning_rate,
        # A schedule that ends with the run could not be resumed with more updates.
        lr_scheduler_type="constant",
        seed=args.seed,
        logging_steps=1,
        save_steps=args.save_every,
        save_total_limit=2,
        report_to="none",
        use_cpu=not on_gpu,
        bf16=on_gpu,
        # TRL would spread the layers, and transformers the batch, over every GPU in sight, the judge's among them.
        model_init_kwargs={
            "dtype": "bfloat16" if on_gpu else "float32",
            "device_map": {"": 0 if on_gpu else "cpu"},
        },
    )
    if config.n_gpu > 1:
        config._n_gpu = 1
    return config


def lora_config() -> peft.LoraConfig:
    return peft.LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")


def judge_device(device: str) -> str:
    """Where kernels are judged; warns where that is the trainer's own GPU."""
    gpus = torch.cuda.device_count()
    if device == "auto" and gpus > 1:
        return "cuda:1"
    if gpus and device in ("auto", "cuda", "cuda:0"):
        print(
            "Warning: trainer and judge share cuda:0, so times and rewards are unreliable.", file=sys.stderr
        )
    return device


def episodes(args: argparse.Namespace) -> dict[str, Any]:
    """The trainer's arguments that connect it to the judge."""
    device = judge_device(args.device)
    settings = {"tasks": args.tasks, "device": device, "turns": args.turns, "discount": DISCOUNT}
    if args.path == "environment":
        return {"environment_factory": environment_factory(**settings), "reward_funcs": [log_outcomes]}
    return {"rollout_func": rollout_func(**settings), "reward_funcs": [kernel_return]}


def rows(args: argparse.Namespace) -> datasets.Dataset:
    """Prompts, at least as many as an update takes."""
    once = prompt_dataset(args.tasks)
    return once if len(once) >= args.groups else prompt_dataset(args.tasks, repeats=args.groups)


class MetricsFile(TrainerCallback):
    """Appends a line of JSON for each update, and drops lines after the checkpoint that a run resumes from."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._began_s = time.perf_counter()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        kept = [line for line in lines if json.loads(line)["update"] <= state.global_step]
        self._path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._began_s = time.perf_counter()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any], **_: Any) -> None:
        if "loss" not in logs:
            return  # The summary at the end of training.
        row = {"update": state.global_step, "seconds": round(time.perf_counter() - self._began_s, 3)}
        row |= {name: logs.get(key) for name, key in METRICS.items()}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def checkpoint(args: argparse.Namespace) -> str | None:
    """The checkpoint to go on from, if that is asked for."""
    if not args.resume:
        return None
    last = get_last_checkpoint(str(args.output)) if args.output.is_dir() else None
    if last is None:
        sys.exit(f"{args.output} holds no checkpoint to resume from: start without --resume.")
    return last


def make_trainer(args: argparse.Namespace) -> trl.GRPOTrainer:
    tokenizer = AutoTokenizer.from_pretrained(args.model, padding_side="left")
    if tokenizer.chat_template is None:
        sys.exit(f"{args.model} has no chat template: pass a model that was trained to follow instructions.")
    return trl.GRPOTrainer(
        model=args.model,
        args=grpo_config(args, torch.cuda.is_available()),
        train_dataset=rows(args),
        processing_class=tokenizer,
        peft_config=lora_config(),
        callbacks=[MetricsFile(args.output / "metrics.jsonl")],
        **episodes(args),
    )


def main(argv: list[str] | None = None) -> None:
    """Train, save the adapter and say where it is."""
    args = parse(argv)
    last = checkpoint(args)
    args.output.mkdir(parents=True, exist_ok=True)
    try:
        trainer = make_trainer(args)
        trainer.train(resume_from_checkpoint=last)
    except GymKernelError as error:
        sys.exit(str(error))
    trainer.save_model(str(args.output / "adapter"))
    print(f"Adapter: {args.output / 'adapter'}. Metrics: {args.output / 'metrics.jsonl'}.")


if __name__ == "__main__":
    main()
