"""The built-in templates, one for each task of the pilot and one for matrix products.

Their sources are plain files in ``sources``, read as text: three kernels, and short functions that tell the tasks
of one kernel apart. The grids are modest, and hold both good and poor choices for a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template

from gym_kernel.errors import ConfigurationError
from gym_kernel.templates.template import Choice, KernelTemplate

__all__ = ["load_template", "template_names"]


@dataclass(frozen=True)
class _Family:
    """Templates that share a kernel and a grid of choices.

    ``part`` names the placeholder that each member fills with a function of its own, read from the folder
    ``<part>s``; empty where the family has a single member.
    """

    kernel: str
    members: tuple[str, ...]
    choices: dict[str, tuple[Choice, ...]]
    part: str = ""


_FAMILIES = (
    _Family(
        kernel="elementwise",
        part="activation",
        members=(
            *("relu", "leaky_relu", "sigmoid", "tanh"),
            *("swish", "hard_sigmoid", "hard_tanh", "mingpt_gelu"),
        ),
        choices={
            "block": (256, 1024, 4096, 16384),
            "blocks_per_program": (1, 4),
            "num_warps": (2, 4, 8, 16),
        },
    ),
    _Family(
        kernel="rows",
        part="normalisation",
        members=("softmax", "log_softmax"),
        choices={
            "block": (256, 1024, 4096, 16384),
            "method": ("online", "two_sweeps"),
            "last_sweep": ("forward", "backward"),
            "num_warps": (4, 8, 16),
        },
    ),
    _Family(
        kernel="matmul",
        members=("matmul",),
        choices={
            "block_m": (32, 64, 128),
            "block_n": (64, 128),
            "block_k": (16, 32),
            "num_warps": (4, 8),
            "num_stages": (2, 4),
        },
    ),
)


def template_names() -> tuple[str, ...]:
    """Names of the built-in templates; a task's template has the task's id.

    Example:
        >>> "softmax" in template_names(), "matmul" in template_names()
        (True, True)
    """
    return tuple(member for family in _FAMILIES for member in family.members)


@cache
def load_template(name: str) -> KernelTemplate:
    """A built-in template by name.

    Args:
        name: One of :func:`template_names`.

    Returns:
        The template.

    Raises:
        ConfigurationError: There is no template of that name.

    Example:
        >>> list(load_template("mingpt_gelu").choices)
        ['block', 'blocks_per_program', 'num_warps']
    """
    for family in _FAMILIES:
        if name in family.members:
            return KernelTemplate(name, _source(family, name), family.choices)
    raise ConfigurationError(
        f"There is no kernel template {name!r}. Pass one of {', '.join(template_names())}, or a "
        "gym_kernel.templates.KernelTemplate of your own."
    )


def _source(family: _Family, member: str) -> str:
    kernel = _read(f"{family.kernel}.py.tmpl")
    if not family.part:
        return kernel
    part = _read(f"{family.part}s", f"{member}.py.tmpl").strip()
    return Template(kernel).safe_substitute({family.part: part})


def _read(*path: str) -> str:
    return files("gym_kernel.templates").joinpath("sources", *path).read_text(encoding="utf-8")
