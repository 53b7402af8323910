"""Let PPO or a bandit choose the parameters of a kernel template, and compare it with exhaustive search.

    python examples/ppo_templates.py --task softmax --agent ppo --steps 192 --exhaustive --out runs/softmax

An action is one index for each choice of the task's template (block size, warps, variant); the observation is a
vector of numbers. ``--out`` gets ``result.json`` and ``progress.png``. PPO comes from Stable-Baselines3:
``pip install gym-kernel[sb3]``, which brings matplotlib too. A GPU takes about a second for each evaluation; on a CPU
small blocks take longer, because Triton's interpreter runs each program in Python, and every reward is about 0.3.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from statistics import mean, median
from typing import Any

import gymnasium
import numpy as np
from tqdm import tqdm

import gym_kernel
from gym_kernel import GymKernelError
from gym_kernel.evaluator.device_choice import resolve_device
from gym_kernel.templates import KernelTemplate, template_names
from gym_kernel.wrappers import NumericObservation, TemplateAction

Action = tuple[int, ...]
# Final choices are measured again, in turns, because the best of many single measurements is partly luck.
REPEATS = 3
WINDOW = 16
ROLLOUT = 16


@dataclass(frozen=True)
class Trial:
    """One evaluation: what was chosen and what came of it."""

    action: Action
    reward: float
    runtime_us: float | None
    status: str

    @classmethod
    def of(cls, action: Any, info: dict[str, Any]) -> Trial:
        """Read a step's info; a kernel that was not correct has no time."""
        runtime_us = info["runtime_us"] if info["correct"] else None
        return cls(tuple(int(i) for i in action), info["reward"], runtime_us, info["status"])


class TrialLog(gymnasium.Wrapper):
    """Keep every evaluation that was judged, and show the progress."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.trials: list[Trial] = []
        self.bar: tqdm | None = None

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not truncated:
            self.trials.append(Trial.of(action, info))
        if self.bar is not None:
            self.bar.update()
            self.bar.set_postfix(reward=f"{reward:.4f}", status=info["status"])
        return observation, reward, terminated, truncated, info

    def evaluate(self, actions: Iterable[Action], title: str) -> list[Trial]:
        """Evaluate each action once; only those that were judged are returned."""
        actions = list(actions)
        return self.watched(title, len(actions), lambda: [self._play(action) for action in actions])

    def watched(self, title: str, total: int, work: Callable[[], object]) -> list[Trial]:
        """Trials that ``work`` makes, under a progress bar."""
        before = len(self.trials)
        with tqdm(total=total, desc=title) as self.bar:
            work()
        self.bar = None
        return self.trials[before:]

    def _play(self, action: Action) -> None:
        self.reset()
        self.step(np.array(action))


class ThompsonBandit:
    """Thompson sampling on a Gaussian process over the grid, in which neighbours resemble each other.

    The covariance of two actions is ``0.7`` to the power of their distance along the axes (an exponential kernel);
    rewards are standardised, with a noise of 0.1 standard deviations.
    """

    NOISE_VARIANCE = 0.01

    def __init__(self, shape: Action, seed: int) -> None:
        self._actions = np.array(list(np.ndindex(*shape)))
        self._prior = 0.7 ** np.abs(self._actions[:, None] - self._actions[None]).sum(axis=-1)
        self._random = np.random.default_rng(seed)
        self._seen: list[int] = []
        self._rewards: list[float] = []

    def choose(self) -> Action:
        """The best action of a draw from the posterior."""
        expected, covariance = self._posterior()
        drawn = self._random.multivariate_normal(expected, covariance, check_valid="ignore", method="eigh")
        return tuple(self._actions[int(drawn.argmax())].tolist())

    def learn(self, action: Action, reward: float) -> None:
        """Add one observation."""
        self._seen.append(int((self._actions == action).all(axis=1).argmax()))
        self._rewards.append(reward)

    def greedy(self) -> Action:
        """The action that is expected to be best."""
        return tuple(self._actions[int(self._posterior()[0].argmax())].tolist())

    def _posterior(self) -> tuple[np.ndarray, np.ndarray]:
        if not self._seen:
            return np.zeros(len(self._actions)), self._prior
        rewards = np.array(self._rewards)
        scaled = (rewards - rewards.mean()) / (rewards.std() or 1.0)
        across = self._prior[:, self._seen]
        inverse = np.linalg.inv(across[self._seen] + self.NOISE_VARIANCE * np.eye(len(self._seen)))
        return across @ inverse @ scaled, self._prior - across @ inverse @ across.T


def run_bandit(log: TrialLog, template: KernelTemplate, steps: int, seed: int) -> Action:
    """Spend ``steps`` evaluations on Thompson sampling; return the final choice."""
    bandit = ThompsonBandit(template.shape, seed)

    def learn() -> None:
        for _ in range(steps):
            before = len(log.trials)
            log.reset()
            log.step(np.array(bandit.choose()))
            for trial in log.trials[before:]:
                bandit.learn(trial.action, trial.reward)

    log.watched("bandit", steps, learn)
    return bandit.greedy()


def run_ppo(log: TrialLog, template: KernelTemplate, steps: int, seed: int) -> Action:
    """Spend ``steps`` evaluations, rounded up to whole rollouts, on PPO; return the final choice."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.logger import Logger

    env = NumericObservation(log)
    # Few evaluations and a single decision: small rollouts, large steps, and no value beyond the reward.
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=ROLLOUT,
        batch_size=ROLLOUT,
        n_epochs=10,
        learning_rate=0.02,
        gamma=0.0,
        policy_kwargs={"net_arch": [16]},
        seed=seed,
        device="cpu",
    )
    # Its own logger leaves a folder in the temporary one.
    model.set_logger(Logger(None, []))
    spent = -(-steps // ROLLOUT) * ROLLOUT
    if spent != steps:
        print(f"PPO spends {spent} evaluations in place of {steps}: whole rollouts of {ROLLOUT}.")
    log.watched("ppo", spent, lambda: model.learn(steps))
    observation, _ = env.reset()
    return tuple(int(i) for i in model.predict(observation, deterministic=True)[0])


AGENTS = {"ppo": run_ppo, "bandit": run_bandit}


def best_of(trials: list[Trial]) -> Action:
    """The action with the highest mean reward."""
    rewards: dict[Action, list[float]] = {}
    for trial in trials:
        rewards.setdefault(trial.action, []).append(trial.reward)
    return max(rewards, key=lambda action: mean(rewards[action]))


def settled(log: TrialLog, finalists: dict[str, Action]) -> dict[str, float | None]:
    """Median time of each finalist in microseconds, measured in turns; None if it was ever not correct."""
    trials = log.evaluate(list(dict.fromkeys(finalists.values())) * REPEATS, "finalists")

    def time_us(action: Action) -> float | None:
        times_us = [trial.runtime_us for trial in trials if trial.action == action]
        return None if not times_us or None in times_us else median(times_us)

    return {name: time_us(action) for name, action in finalists.items()}


def draw(path: Path, title: str, agent: str, trials: list[Trial], searched: list[Trial]) -> None:
    """Reward against evaluations: each one, the running mean, the best so far, and what search and chance give."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rewards = np.array([trial.reward for trial in trials])
    count = np.arange(1, len(rewards) + 1)
    running = [rewards[max(0, i - WINDOW) : i].mean() for i in count]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(count, rewards, ".", color="0.7", label="one evaluation")
    axes.step(count, np.maximum.accumulate(rewards), color="tab:green", where="post", label="best so far")
    axes.plot(count, running, color="tab:blue", linewidth=2, label=f"mean of the last {WINDOW}")
    if searched:
        found = [trial.reward for trial in searched]
        axes.axhline(max(found), color="k", linestyle="--", linewidth=1, label="exhaustive best")
        axes.axhline(mean(found), color="k", linestyle=":", linewidth=1, label="mean of random choice")
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set(xlabel="evaluations", ylabel="reward", title=f"{agent} on {title}", xlim=(0, len(rewards) + 1))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def report(
    template: KernelTemplate, finalists: dict[str, Action], times_us: dict[str, float | None]
) -> dict[str, Any]:
    """Print what was chosen, with its speed relative to the best of exhaustive search; return it."""
    best_us = times_us.get("exhaustive_best")
    summary: dict[str, Any] = {}
    for name, action in finalists.items():
        time_us = times_us[name]
        values = template.action_to_values(action)
        summary[name] = {"action": action, "values": values, "runtime_us": time_us}
        line = f"{name:16} {values}: " + ("not correct" if time_us is None else f"{time_us:.2f} us")
        if best_us is not None:
            ratio = best_us / time_us if time_us else 0.0
            summary[name]["ratio_to_exhaustive_best"] = ratio
            line += f", {ratio:.3f} of the exhaustive best's speed"
        print(line)
    return summary


def machine(device: str) -> dict[str, str]:
    """What was measured on, and with which versions."""
    import torch

    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else platform.machine()
    versions = {package: metadata.version(package) for package in ("torch", "triton")}
    return {
        "name": name,
        "python": platform.python_version(),
        "gym_kernel": gym_kernel.__version__,
        **versions,
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="softmax", help=f"one of {', '.join(template_names())}")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--agent", choices=AGENTS, default="ppo")
    parser.add_argument(
        "--steps",
        type=int,
        default=192,
        help=f"evaluations that the agent may spend; PPO rounds them up to whole rollouts of {ROLLOUT} (default: 192)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--exhaustive", action="store_true", help="evaluate the whole grid first")
    parser.add_argument("--out", type=Path, default=Path("runs/ppo_templates"))
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")
    try:
        # Starts nothing: a mistaken task or device is named before a package that it would take.
        resolve_device(options.device)
        make_log(options).close()
    except GymKernelError as error:
        parser.error(str(error))
    needed = ["matplotlib", *(["stable_baselines3"] if options.agent == "ppo" else [])]
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        parser.error(f"{' and '.join(missing)} missing: pip install gym-kernel[sb3]")
    return options


def make_log(options: argparse.Namespace) -> TrialLog:
    """The environment that the options ask for, with notes of every evaluation."""
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks=options.task, device=options.device)
    return TrialLog(TemplateAction(env))


def main() -> None:
    """Search, learn, compare, write."""
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    log = make_log(options)
    template: KernelTemplate = log.get_wrapper_attr("template")
    try:
        _, info = log.reset(seed=options.seed)
        grid = [tuple(action.tolist()) for action in template.actions()] if options.exhaustive else []
        searched = log.evaluate(grid, "exhaustive") if grid else []
        before = len(log.trials)
        greedy = AGENTS[options.agent](log, template, options.steps, options.seed)
        trials = log.trials[before:]
        finalists = {"best_found": best_of(trials), "final_greedy": greedy}
        if searched:
            finalists["exhaustive_best"] = best_of(searched)
        times_us = settled(log, finalists)
    finally:
        log.close()
    summary = report(template, finalists, times_us)
    result = {
        "task": options.task,
        "device": info["device"],
        "machine": machine(info["device"]),
        "agent": options.agent,
        "seed": options.seed,
        "choices": template.choices,
        "finalists": summary,
        "exhaustive": [asdict(trial) for trial in searched],
        "trials": [asdict(trial) for trial in trials],
    }
    if searched:
        result["random_mean_reward"] = mean(trial.reward for trial in searched)
        result["exhaustive_best_reward"] = max(trial.reward for trial in searched)
    (options.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    draw(options.out / "progress.png", f"{options.task}, {info['device']}", options.agent, trials, searched)
    print(f"Wrote {options.out / 'result.json'} and {options.out / 'progress.png'}.")


if __name__ == "__main__":
    main()
