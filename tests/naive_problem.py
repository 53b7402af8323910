"""What a naive checker judges: a task's reference at its small shape, and a candidate's file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["Problem"]

PARAMETER_SEED = 20_240_229


class Problem:
    """A task's reference at its small shape, and the candidate's file."""

    def __init__(self, task_id: str, path: Path) -> None:
        import torch

        from gym_kernel.tasks import load
        from gym_kernel.tasks.task import TaskScale

        task = load(task_id)[0]
        self.path = path
        self.namespace: dict[str, Any] = {"__name__": "reference"}
        exec(task.source, self.namespace)
        self.namespace.update(task.sizes_at(TaskScale.SMALL))
        self.arguments = self.namespace["get_init_inputs"]()
        # KernelBench's way with parameters: a seed that everybody can read.
        torch.manual_seed(PARAMETER_SEED)
        self.reference = self.namespace["Model"](*self.arguments).requires_grad_(False)

    def candidate(self) -> Any:
        """Import the submission and construct its model, with the reference's parameters where it has them."""
        module = load_module(self.path)
        model = module.ModelNew(*self.arguments)
        if state := self.reference.state_dict():
            model.load_state_dict(state, strict=False)
        return model

    def official(self, seed: int) -> Any:
        """KernelBench's inputs: uniform in [0, 1)."""
        import torch

        torch.manual_seed(seed)
        return self.namespace["get_inputs"]()[0]

    def signed(self, seed: int) -> Any:
        """Normal inputs of both signs."""
        return self.signed_arguments(seed)[0]

    def signed_arguments(self, seed: int) -> tuple[Any, ...]:
        """All arguments: the first normal, of both signs, and the others as they are usually made."""
        import torch

        torch.manual_seed(seed)
        first, *others = self.namespace["get_inputs"]()
        return torch.empty_like(first).normal_(std=3.0), *others


def load_module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("submission", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["submission"] = module
    spec.loader.exec_module(module)
    return module
