"""Spreading a vector environment's groups over devices."""

from __future__ import annotations

from collections.abc import Sequence

from gym_kernel.errors import ConfigurationError
from gym_kernel.evaluator.device_choice import cuda_device_count, device_name, torch_has_cuda

__all__ = ["spread"]


def spread(device: str | Sequence[str], groups: int) -> tuple[str, ...]:
    """The device of each group, in turn; a group's times are comparable because it stays on one.

    Args:
        device: One device for all, a sequence to take in turn, or ``"auto"`` for every visible GPU (the CPU where
            there is none). No GPU is touched.
        groups: How many groups.

    Returns:
        ``groups`` device names.

    Raises:
        ConfigurationError: The sequence is empty or holds something that is no name.
    """
    given = list(device) if isinstance(device, (list, tuple)) else [device]
    names = [name if isinstance(name, str) else device_name(name) for name in given]
    if not names:
        raise ConfigurationError(
            f"device must be a name or a list of names such as ['cuda:0'], not {device!r}."
        )
    if names == ["auto"]:
        count = cuda_device_count() if torch_has_cuda() else 0
        names = [f"cuda:{index}" for index in range(count)] or ["cpu"]
    return tuple(names[group % len(names)] for group in range(groups))
