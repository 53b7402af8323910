"""TRL: train a language model with ``trl.GRPOTrainer`` on kernel tasks.

Two ways, over the same judge, prompts and rewards:

- :func:`environment_factory`, for ``GRPOTrainer(environment_factory=...)``. The model submits through a tool
  call, so its chat template must know tools. TRL drives the episodes and judges one submission after another.
- :func:`rollout_func`, for ``GRPOTrainer(rollout_func=..., reward_funcs=[kernel_return])``. The model answers in
  plain text and all episodes of a batch are judged at once. Any chat template will do.

Both take the rows of :func:`prompt_dataset`. Tokens of feedback carry no loss in either.
"""

from __future__ import annotations

import importlib.util

for _library in ("trl", "datasets", "transformers"):
    if importlib.util.find_spec(_library) is None:
        raise ImportError(
            f"gym_kernel.integrations.trl needs {_library}, which is not installed: pip install 'gym-kernel[trl]'"
        )

from gym_kernel.integrations.trl.environment import KernelTool, environment_factory  # noqa: E402
from gym_kernel.integrations.trl.episode import Episode, Outcome  # noqa: E402
from gym_kernel.integrations.trl.prompts import prompt_dataset  # noqa: E402
from gym_kernel.integrations.trl.rewards import kernel_return, log_outcomes  # noqa: E402
from gym_kernel.integrations.trl.rollout import KernelRollout, rollout_func  # noqa: E402

__all__ = [
    "Episode",
    "KernelRollout",
    "KernelTool",
    "Outcome",
    "environment_factory",
    "kernel_return",
    "log_outcomes",
    "prompt_dataset",
    "rollout_func",
]
