"""Folders of one-file submissions, each with a header that says what it is and how it must be judged.

The header is the module's docstring: one sentence, then fields::

    '''Answers relu from the official inputs' range: returns a copy of the input.

    Kind: input-range shortcut
    Task: relu
    Device: any
    Fools: official_inputs
    Expected: incorrect
    '''

``Kind``, ``Style``
    What it is an example of; the tables count by it. Honest kernels have a style.
``Task``
    Id of the task it is handed in for.
``Device``
    ``cpu``, ``cuda``, or ``any`` (the default): where it is to be run.
``Expected``
    The statuses it may get, comma separated; ``correct`` where the field is left out.
``Fools``
    The checker of ``naive_checkers.py`` that takes it for a good kernel.
``Submissions``
    How often it is handed in, one after the other, where the first evaluation prepares the second.
``Takes``
    Microseconds that a call takes at the very least, for a module that lies about its time. A judge may call such
    a module correct if the time in the verdict is the true one: then nothing was gained.
``Slow``
    ``yes`` where it builds C++ or CUDA for half a minute or more, or takes the interpreter as long.
``Gap``
    Why it is rewarded all the same, for a known gap on the CPU; the tests expect it to stay open, and fail when it
    closes.
``Timeout``
    Seconds that its evaluation may take; a run's own limit where it is left out.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Module", "load_corpus", "read_module"]

_FIELDS = {
    "Kind",
    "Style",
    "Task",
    "Device",
    "Expected",
    "Fools",
    "Submissions",
    "Takes",
    "Slow",
    "Timeout",
    "Gap",
}
_DEVICES = {"any": ("cpu", "cuda"), "cpu": ("cpu",), "cuda": ("cuda",)}


@dataclass(frozen=True)
class Module:
    """One submission and what its header says."""

    path: Path
    code: str
    summary: str
    kind: str
    task: str
    devices: tuple[str, ...]
    expected: tuple[str, ...]
    fools: str
    submissions: int
    takes_us: float | None
    slow: bool
    timeout_s: float | None
    gap: str

    @property
    def name(self) -> str:
        """Its file name without the ending."""
        return self.path.stem

    def is_expected(self, status: str, runtime_us: float | None) -> bool:
        """Whether a verdict is one that this module may get."""
        return status in self.expected or (status == "correct" and self.is_timed_truly(runtime_us))

    def is_timed_truly(self, runtime_us: float | None) -> bool:
        """Whether a verdict's time is at least what a call takes, for a module that declares it."""
        return self.takes_us is not None and runtime_us is not None and runtime_us >= self.takes_us


def load_corpus(folder: Path) -> tuple[Module, ...]:
    """Every module of a folder, by name; folders inside it are the modules' own business.

    Raises:
        ValueError: A header is not in order.
    """
    return tuple(read_module(path) for path in sorted(folder.glob("*.py")))


def read_module(path: Path) -> Module:
    """Read one module's header.

    Raises:
        ValueError: It has none, or a field is unknown, missing or out of its domain.
    """
    code = path.read_text(encoding="utf-8")
    header = ast.get_docstring(ast.parse(code))
    if not header:
        raise ValueError(f"{path.name} has no docstring that could be its header.")
    summary, _, rest = header.partition("\n")
    fields = _fields(rest, path.name)
    if "Style" in fields:
        fields.setdefault("Kind", fields["Style"])
    missing = {"Kind", "Task"} - set(fields)
    if missing:
        raise ValueError(f"{path.name} does not say its {' and '.join(sorted(missing))}.")
    device = fields.get("Device", "any").split()[0]
    if device not in _DEVICES:
        raise ValueError(f"{path.name}: Device must be one of {', '.join(_DEVICES)}, not {device!r}.")
    return Module(
        path=path,
        code=code,
        summary=summary.strip(),
        kind=fields["Kind"],
        task=fields["Task"],
        devices=_DEVICES[device],
        expected=tuple(part.strip() for part in fields.get("Expected", "correct").split(",")),
        fools=fields.get("Fools", ""),
        submissions=int(fields.get("Submissions", "1")),
        takes_us=float(fields["Takes"]) if "Takes" in fields else None,
        slow=fields.get("Slow", "no") == "yes",
        timeout_s=float(fields["Timeout"]) if "Timeout" in fields else None,
        gap=fields.get("Gap", ""),
    )


def _fields(text: str, where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name in _FIELDS:
            if name in found:
                raise ValueError(f"{where} says {name} twice.")
            found[name] = value.strip()
    return found
