"""What ``get_inputs`` and ``get_init_inputs`` return, held against what takes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from gym_kernel.errors import TaskError
from gym_kernel.evaluator.reference_source import execute_reference
from gym_kernel.tasks.task import Task, TaskScale

__all__ = ["check_contract"]

_INPUTS_RULE = "get_inputs must return a list of tensors, one for each argument of forward"
_INIT_RULE = "get_init_inputs must return a list, one entry for each argument of Model after self"


def check_contract(task: Task, scale: TaskScale, device_id: str) -> None:
    """Check that the task's functions return lists, as long as what ``Model`` and ``forward`` take.

    What they raise themselves is left to the judge's own bench, which words it.

    Args:
        task: The task.
        scale: Sizes to run it at.
        device_id: Device on which its tensors are made.

    Raises:
        TaskError: They return something else, or the module does not run.
    """
    namespace = execute_reference(task, task.source, scale)
    for name, rule, taker in (
        ("get_init_inputs", _INIT_RULE, getattr(namespace["Model"], "__init__", None)),
        ("get_inputs", _INPUTS_RULE, getattr(namespace["Model"], "forward", None)),
    ):
        made, ran = _called(namespace[name], torch.device(device_id))
        if not ran:
            return
        if not isinstance(made, (list, tuple)):
            what = "None" if made is None else f"a {type(made).__name__}"
            fix = "`return [x]`" if name == "get_inputs" else "`return []` where there are none"
            raise TaskError(f"{rule}, not {what}. Write {fix}")
        _check_count(name, rule, taker, made)


def _called(function: Callable[[], Any], device: torch.device) -> tuple[Any, bool]:
    """What a function of the task returns, and whether it returned."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        try:
            with device, torch.no_grad():
                return function(), True
        except (Exception, SystemExit):
            return None, False


def _check_count(name: str, rule: str, taker: Any, made: list[Any] | tuple[Any, ...]) -> None:
    try:
        signature = inspect.signature(taker)
    except (TypeError, ValueError):
        # It is no Python function, and says nothing of its arguments.
        return
    try:
        signature.bind(None, *made)
    except TypeError:
        takes = ", ".join(map(str, list(signature.parameters.values())[1:]))
        raise TaskError(
            f"{rule}: it returns {len(made)} {'entry' if len(made) == 1 else 'entries'}, and what takes them has the "
            f"arguments ({takes}). Let {name} return as many"
        ) from None
