"""Wrappers of ``KernelEnv``, one module each, imported when they are asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gym_kernel.wrappers.feedback_mask import FeedbackMask
    from gym_kernel.wrappers.numeric_observation import NumericObservation
    from gym_kernel.wrappers.repair_budget import RepairBudget
    from gym_kernel.wrappers.template_action import TemplateAction

__all__ = ["FeedbackMask", "NumericObservation", "RepairBudget", "TemplateAction"]

_MODULES = {
    "FeedbackMask": "feedback_mask",
    "NumericObservation": "numeric_observation",
    "RepairBudget": "repair_budget",
    "TemplateAction": "template_action",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
