"""Names of devices, and what stands for one."""

from __future__ import annotations

import pytest
import torch

from gym_kernel import ConfigurationError
from gym_kernel.evaluator.client import EvaluatorConfig
from gym_kernel.evaluator.device_choice import device_name


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("auto", "auto"),
        ("cuda:3", "cuda:3"),
        (1, "cuda:1"),
        (torch.device("cpu"), "cpu"),
        (torch.device("cuda", 2), "cuda:2"),
    ],
)
def test_what_stands_for_a_device_is_named(device: object, name: str) -> None:
    assert device_name(device) == name
    assert EvaluatorConfig(device=device).device == name  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["cudo", "cuda:", "cuda:٣", True, None, -1, 1.0, torch.device("meta")])
def test_what_is_none_is_refused(device: object) -> None:
    with pytest.raises(ConfigurationError, match="pass 'auto', 'cpu', 'cuda' or 'cuda:1'"):
        device_name(device)
