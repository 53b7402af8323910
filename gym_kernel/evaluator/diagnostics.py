"""Trim what Python and compilers say about a submission to the submission's own lines.

A traceback of a failing Triton kernel is mostly Triton, a failed C++ build mostly ninja and torch's headers.
A policy learns from the few lines about its own code, in bounded length and without paths of the machine.
"""

from __future__ import annotations

import os
import re
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import TracebackType

__all__ = ["bounded", "compiler_output", "python_traceback"]

_LIMIT_CHARS = 4_000
_MAX_FRAMES = 12
_MAX_SNIPPET_LINES = 6

_LOCATED = re.compile(
    r"^(?P<file>[^\s:(][^:(\n]*?)(?::(?P<line>\d+)(?::\d+)?:|\((?P<cuda_line>\d+)\):)\s+(?P<rest>\S.*)$"
)
_SEVERITY = re.compile(r"^(?:catastrophic |fatal )?(?P<severity>error|warning|note|remark)\b")
_REQUIRED = re.compile(r"^(?:recursively )?required (?:from|by)\b")
_SNIPPET = re.compile(r"^\s*(?P<line>\d+)?\s*\|(?P<text>.*)$")
_UNLOCATED_ERROR = re.compile(
    r"^(?:ptxas|nvlink|nvcc|cc1plus|c\+\+|g\+\+|clang)\S*\s*:?\s*(?:fatal\s*)?error\b"
    r"|undefined reference to|^(?:/\S*/)?ld: |multiple definition of|^collect2: error"
)
_NOISE = re.compile(
    r"^\[\d+/\d+\]|^FAILED:|^ninja: |^Error building extension|^\s*$|^Remark: "
    r"|^(?:\S*/)?(?:c\+\+|g\+\+|nvcc|clang\+\+)(?: |$)"
    r"|^In file included from|^\s+from \S+:\d+|: In (?:function|member function|instantiation|lambda)"
    r"|^\S+: At global scope:|^\d+ (?:error|warning)s? detected"
)
# g++ follows the locale; observations are ASCII.
_PLAIN_QUOTES = {0x2018: "'", 0x2019: "'"}
_TORCH_STACK = re.compile(r"^(?:Exception raised from |frame #\d+: )")
_INSTALLED = re.compile(r"(?:/[^\s:'\"()<>,]+)?/site-packages/")
_DIRECTORY = re.compile(r"(?<![\w.:/])/(?:[\w.+@-]+/)+(?=[\w.+-]+(?:\.\w|:))")


def bounded(text: str, limit: int) -> str:
    r"""Keep the head and the tail of a text.

    Args:
        text: Any text.
        limit: Longest text that is kept whole, in characters.

    Returns:
        ``text``, or its first two thirds and last third of ``limit`` characters round a line that says how
        many were left out.

    Example:
        >>> bounded("abcdefghi", 6)
        'abcd\n... 3 characters left out ...\nhi'
    """
    if len(text) <= limit:
        return text
    head = (2 * limit + 2) // 3
    tail = limit - head
    left_out = len(text) - limit
    return f"{text[:head]}\n... {left_out} characters left out ...\n{text[len(text) - tail :]}"


def python_traceback(
    exc: BaseException, path: str | os.PathLike[str], source: str, limit: int = _LIMIT_CHARS
) -> str:
    """Format an exception with the frames of the candidate's own file alone.

    Args:
        exc: What the candidate raised; the exceptions that caused it are shown first, as Python does.
        path: File that the candidate was loaded from.
        source: Its text.
        limit: Longest result, in characters.

    Returns:
        ``submission.py, line 7, in forward`` and the line's text for each own frame, then the exception.
    """
    path = Path(path)
    lines = source.splitlines()
    blocks = [
        "\n".join([*_own_frames(error.__traceback__, path, lines), _said(error, path)])
        for error in _chain(exc)
    ]
    # A cause inside a library is worth showing only for words that the next block does not repeat.
    kept = [
        block
        for block, following in pairwise([*blocks, ""])
        if not following or "\n" in block or block.partition(": ")[2] not in following
    ]
    return bounded("\n\n".join(kept), limit)


def compiler_output(text: str, source: str, limit: int = _LIMIT_CHARS) -> str:
    """Trim the output of a failed ``torch.utils.cpp_extension.load_inline``.

    The build compiles generated files, ``main.cpp`` and ``cuda.cu``, whose lines are the candidate's string
    literals after a few includes. Lines that the compiler quotes are looked up in the candidate's module, and
    their numbers are given as the module's.

    Args:
        text: Output of ninja, g++ or clang, nvcc and the linker.
        source: The candidate's module.
        limit: Longest result, in characters.

    Returns:
        Errors first, then warnings, each with the lines the compiler quotes. Where nothing is recognised, the
        text without ninja's lines.
    """
    diagnostics = list(_diagnostics(text))
    numbering = _Numbering(diagnostics, source)
    ordered = sorted(diagnostics, key=lambda found: found.severity != "error")
    shown = [found.shown(numbering) for found in ordered if found.worth_showing]
    if not shown:
        shown = [line for line in text.splitlines() if not _NOISE.search(line)] or text.splitlines()
    return bounded(_without_directories("\n".join(shown)).translate(_PLAIN_QUOTES), limit)


def _chain(exc: BaseException) -> list[BaseException]:
    """The exception and what caused it, the first cause first."""
    chain: list[BaseException] = []
    current: BaseException | None = exc
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return chain[::-1]


def _own_frames(trace: TracebackType | None, path: Path, lines: list[str]) -> list[str]:
    own = os.path.realpath(path)
    shown: list[str] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if os.path.realpath(code.co_filename) == own:
            number = trace.tb_lineno
            line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
            shown.append(f"{path.name}, line {number}, in {code.co_name}\n    {line}".rstrip())
        trace = trace.tb_next
    if len(shown) <= _MAX_FRAMES:
        return shown
    kept = _MAX_FRAMES // 2
    return [*shown[:kept], f"... {len(shown) - 2 * kept} frames left out ...", *shown[-kept:]]


def _message(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip()


def _said(error: BaseException, path: Path) -> str:
    """The exception's own lines: short class name, no addresses of torch's C++ stack, no directories."""
    message = _message(error).replace(str(path), path.name)
    kept = [line for line in message.splitlines() if not _TORCH_STACK.match(line)]
    name = type(error).__module__ + "." + type(error).__qualname__
    if kept and kept[0].startswith(name):
        kept[0] = type(error).__qualname__ + kept[0][len(name) :]
    return _without_directories("\n".join(kept))


def _without_directories(text: str) -> str:
    return _DIRECTORY.sub("", _INSTALLED.sub("", text))


@dataclass
class _Diagnostic:
    """One message of a compiler with the lines it quotes."""

    severity: str
    message: str
    file: str = ""
    line: int = 0
    snippet: list[str] = field(default_factory=list)

    @property
    def generated(self) -> bool:
        """Whether it is about a file made from the candidate's strings, not about a library's header."""
        return os.path.basename(self.file) in ("main.cpp", "cuda.cu")

    @property
    def worth_showing(self) -> bool:
        return self.severity == "error" or self.generated

    @property
    def quoted(self) -> str:
        """The text of the line itself, as the compiler repeats it."""
        for line in self.snippet:
            found = _SNIPPET.match(line)
            if found is None:
                return line.strip()
            if found["line"] and int(found["line"]) == self.line:
                return found["text"].strip()
        return ""

    def shown(self, numbering: _Numbering) -> str:
        if not self.line:
            return self.message
        number = numbering.module_line(self)
        if number is None:
            head, shift = f"{os.path.basename(self.file)}:{self.line}", 0
        else:
            head, shift = f"line {number}", number - self.line
        return "\n".join([f"{head}: {self.message}", *self._own_snippet(shift)])

    def _own_snippet(self, shift: int) -> Iterator[str]:
        for line in self.snippet[:_MAX_SNIPPET_LINES] if self.generated else ():
            found = _SNIPPET.match(line)
            if found is not None and found["line"]:
                yield f"{int(found['line']) + shift:5} |{found['text']}"
            else:
                yield line.rstrip()


class _Numbering:
    """Turns line numbers of the generated files into the module's, by the text that stands there."""

    def __init__(self, diagnostics: list[_Diagnostic], source: str) -> None:
        self._places: dict[str, list[int]] = {}
        for number, line in enumerate(source.splitlines(), start=1):
            self._places.setdefault(_squeezed(line), []).append(number)
        # A line such as "}" stands in many places; the shift that most quoted lines agree on tells which.
        self._shifts: dict[str, Counter[int]] = {}
        for found in diagnostics:
            votes = self._shifts.setdefault(found.file, Counter())
            votes.update(place - found.line for place in self._candidates(found))

    def module_line(self, found: _Diagnostic) -> int | None:
        """Line of the module that a diagnostic is about, None where it cannot be told."""
        if not found.generated:
            return None
        votes = self._shifts[found.file]
        candidates = self._candidates(found)
        if candidates:
            return max(candidates, key=lambda place: (votes[place - found.line], -place))
        if found.quoted or not votes:
            return None
        return found.line + votes.most_common(1)[0][0]

    def _candidates(self, found: _Diagnostic) -> list[int]:
        return self._places.get(_squeezed(found.quoted), []) if found.quoted else []


def _squeezed(line: str) -> str:
    return "".join(line.split())


def _diagnostics(text: str) -> Iterator[_Diagnostic]:
    current: _Diagnostic | None = None
    for line in text.splitlines():
        started = _started(line)
        if started is not None:
            if current is not None:
                yield current
            current = started
        elif _NOISE.search(line):
            if current is not None:
                yield current
            current = None
        elif current is not None and current.line:
            current.snippet.append(line)
    if current is not None:
        yield current


def _started(line: str) -> _Diagnostic | None:
    """The diagnostic that a line begins, if it does."""
    located = _LOCATED.match(line)
    if located is not None:
        severity = _SEVERITY.match(located["rest"])
        where = located["file"], int(located["line"] or located["cuda_line"])
        if severity is not None:
            return _Diagnostic(severity["severity"], located["rest"], *where)
        if _REQUIRED.match(located["rest"]):
            return _Diagnostic("note", located["rest"], *where)
    if _UNLOCATED_ERROR.search(line):
        return _Diagnostic("error", line.strip())
    return None
