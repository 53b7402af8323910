"""Operators that the harness runs itself while a submission is watched, to learn whether the witnesses are awake.

A submission shares its process with the witnesses. One that has silenced them, or that empties their notes, cannot
know which operator the judge has asked for in a call, and that operator is then missing from the notes.
"""

from __future__ import annotations

import random

import torch
from msgspec.structs import replace

from gym_kernel.evaluator.worker_messages import Profile, WorkEvidence

__all__ = ["SPIN_KERNEL", "choose_canary", "run_canary", "was_canary_seen", "was_spin_seen", "without_canary"]

#: Part of the name of the kernel that spins.
SPIN_KERNEL = "spin_kernel"

_SHARE = 0.5
_NAMES = (
    "acos", "asinh", "atan", "cosh", "digamma", "erfc", "erfinv", "expm1", "frac", "i0", "lgamma", "log1p",
    "log2", "logit", "sinc", "sinh", "trunc",
)  # fmt: skip
# Bound now, before a submission can put its own in their place.
_OPERATORS = {name: getattr(torch, name) for name in _NAMES}
_ARGUMENT = torch.full((1,), 0.5)


def choose_canary(choices: random.Random) -> str:
    """The operator for one call; empty for none."""
    return choices.choice(_NAMES) if choices.random() < _SHARE else ""


def run_canary(name: str) -> None:
    """Run the operator on one element in host memory; nothing where ``name`` is empty.

    Raises:
        KeyError: There is no such canary.
    """
    if name:
        _OPERATORS[name](_ARGUMENT)


def was_canary_seen(name: str, evidence: WorkEvidence) -> bool:
    """Whether both witnesses noted it."""
    operator = _operator(name)
    return not name or (operator in evidence.operations and operator in evidence.profile.operations)


def was_spin_seen(profile: Profile) -> bool:
    """Whether the profiler noted the spin that the harness puts before every call on a GPU."""
    return any(SPIN_KERNEL in kernel.name for kernel in profile.kernels)


def without_canary(name: str, evidence: WorkEvidence) -> WorkEvidence:
    """The evidence but for the canary, which is not the submission's doing."""
    if not name:
        return evidence
    operator = _operator(name)
    profile = replace(evidence.profile, operations=_others(operator, evidence.profile.operations))
    return replace(evidence, operations=_others(operator, evidence.operations), profile=profile)


def _others(operator: str, operations: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(operation for operation in operations if operation != operator)


def _operator(name: str) -> str:
    return f"aten::{name}"
