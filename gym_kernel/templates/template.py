"""``KernelTemplate``: the source of a kernel with choices left open, and the grid of what may be chosen."""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Union

import numpy as np
import numpy.typing as npt

from gym_kernel.errors import ConfigurationError

__all__ = ["Choice", "KernelTemplate"]

Choice = Union[int, str]
"""One value of a choice: a whole number, such as a block size, or the name of a variant."""


@dataclass(frozen=True)
class KernelTemplate:
    """The source of a kernel with placeholders, and the values that each may take.

    Placeholders are those of :class:`string.Template`: ``$block`` or ``${block}``; a dollar sign is ``$$``.
    Combinations that cannot work (too much shared memory, for instance) need not be left out: the judge tells.

    Attributes:
        name: Unique name; for a built-in template the id of its task.
        source: The module's text with placeholders.
        choices: For each placeholder, in the order of an action's entries, its values: whole numbers or
            strings, each once.

    Raises:
        ConfigurationError: The choices and the placeholders do not fit together.

    Example:
        >>> template = KernelTemplate("toy", "BLOCK = $block", {"block": (64, 256, 1024)})
        >>> template.render(block=256)
        'BLOCK = 256'
        >>> template.action_to_values([2])
        {'block': 1024}
        >>> template.values_to_action({"block": 256})
        array([1])
    """

    name: str
    source: str
    choices: Mapping[str, tuple[Choice, ...]]

    def __post_init__(self) -> None:
        # A copy of its own, so that a caller's later change does not reach a frozen object.
        choices = {name: tuple(values) for name, values in self.choices.items()}
        object.__setattr__(self, "choices", choices)
        _check_values(self)
        _check_placeholders(self)

    def __hash__(self) -> int:
        return hash((self.name, self.source, tuple(self.choices.items())))

    def __len__(self) -> int:
        """Number of combinations."""
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each choice, in order: the ``nvec`` of a MultiDiscrete space."""
        return tuple(len(values) for values in self.choices.values())

    def render(self, **values: Choice) -> str:
        """The module's text with one value for each placeholder.

        Args:
            **values: One value for each of :attr:`choices`, out of those listed there.

        Returns:
            The source of a candidate module.

        Raises:
            ConfigurationError: A value is missing, unknown or not among the choices.
        """
        self.values_to_action(values)
        return string.Template(self.source).substitute(values)

    def action_to_values(self, action: npt.ArrayLike) -> dict[str, Choice]:
        """The values that an action stands for.

        Args:
            action: One index for each choice, integers of shape ``(len(choices),)``.

        Returns:
            A value for each name.

        Raises:
            ConfigurationError: The action is not in the MultiDiscrete space of :attr:`shape`.
        """
        indices = np.asarray(action)
        if indices.shape != (len(self.choices),) or not np.issubdtype(indices.dtype, np.integer):
            raise ConfigurationError(
                f"An action of the template {self.name!r} is {len(self.choices)} whole numbers, one index for each "
                f"of {', '.join(self.choices)}, not {action!r}."
            )
        if (indices < 0).any() or (indices >= self.shape).any():
            raise ConfigurationError(
                f"The action {indices.tolist()} is outside of the template {self.name!r}: each index starts at 0 "
                f"and lies below {list(self.shape)}."
            )
        return {
            name: values[i] for (name, values), i in zip(self.choices.items(), indices.tolist(), strict=True)
        }

    def values_to_action(self, values: Mapping[str, Choice]) -> npt.NDArray[np.int64]:
        """The action that stands for some values; the inverse of :meth:`action_to_values`.

        Args:
            values: One value for each of :attr:`choices`.

        Returns:
            Indices, int64 of shape ``(len(choices),)``.

        Raises:
            ConfigurationError: A value is missing, unknown or not among the choices.
        """
        if set(values) != set(self.choices):
            raise ConfigurationError(
                f"The template {self.name!r} takes a value for each of {', '.join(self.choices)}, "
                f"not for {', '.join(map(str, values)) or 'none'}."
            )
        for name, allowed in self.choices.items():
            if values[name] not in allowed:
                raise ConfigurationError(
                    f"{name} of the template {self.name!r} is one of {', '.join(map(repr, allowed))}, "
                    f"not {values[name]!r}."
                )
        return np.array([allowed.index(values[name]) for name, allowed in self.choices.items()], np.int64)

    def actions(self) -> Iterator[npt.NDArray[np.int64]]:
        """Every action once; the last index changes fastest.

        Example:
            >>> template = KernelTemplate("toy", "$a $b", {"a": (1, 2), "b": ("x", "y")})
            >>> [action.tolist() for action in template.actions()]
            [[0, 0], [0, 1], [1, 0], [1, 1]]
        """
        for indices in product(*map(range, self.shape)):
            yield np.array(indices, np.int64)


def _check_values(template: KernelTemplate) -> None:
    if not template.choices:
        raise ConfigurationError(
            f"The template {template.name!r} has no choices. Pass a mapping such as {{'block': (256, 1024)}}."
        )
    for name, values in template.choices.items():
        if not (_all(values, int) or _all(values, str)) or len(set(values)) != len(values):
            raise ConfigurationError(
                f"The choice {name!r} of the template {template.name!r} needs different whole numbers or different "
                f"strings, at least one, not {values!r}."
            )


def _all(values: Sequence[object], kind: type) -> bool:
    return bool(values) and all(isinstance(value, kind) and not isinstance(value, bool) for value in values)


def _check_placeholders(template: KernelTemplate) -> None:
    found = {
        match["named"] or match["braced"]
        for match in string.Template.pattern.finditer(template.source)
        if match["escaped"] is None and match["invalid"] is None
    }
    if any(match["invalid"] is not None for match in string.Template.pattern.finditer(template.source)):
        raise ConfigurationError(
            f"The source of the template {template.name!r} holds a dollar sign that begins no placeholder. "
            "Write it as $$."
        )
    if found != set(template.choices):
        raise ConfigurationError(
            f"The source of the template {template.name!r} has the placeholders {', '.join(sorted(found)) or 'none'}, "
            f"but the choices are {', '.join(template.choices)}. Give each placeholder its values."
        )
