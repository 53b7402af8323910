"""Checking arguments that count something."""

from __future__ import annotations

from gym_kernel.errors import ConfigurationError

__all__ = ["check_count"]


def check_count(name: str, value: object, least: int, most: int | None = None) -> None:
    """Check that an argument is a whole number within bounds.

    Raises:
        ConfigurationError: It is not; the message names it.
    """
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if fits and (most is None or value <= most):  # type: ignore[operator]
        return
    bounds = f"at least {least:,}" if most is None else f"from {least:,} to {most:,}"
    raise ConfigurationError(f"{name} must be a whole number, {bounds}, not {value!r}.")
