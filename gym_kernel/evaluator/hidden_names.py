"""What a program must not mention for a part of some headers to mean the same to it as all of them.

The argument. Let ``light`` include some of the files that ``full`` includes, under the same macros. Whatever of a
program compiles with ``light`` means the same with ``full`` unless some lookup finds more there. Lookup finds things by
the names that the program writes (for operators by their symbols; for specialisations by their template's name), so
a program that writes none of the names with a declaration in ``full`` alone is safe. What cannot be found is left out:

* a name in a namespace that ``light`` does not open, because to get there the namespace's own name has to be
  written, and that is a hidden name itself;
* a name in a namespace inside another one, unless the program writes that namespace's name, or the name is a
  function's and ``light`` declares a class in there, through which an argument could find it;
* a further declaration of a class that is known, or a using-declaration of a class that is found anyway;
* operators, specialisations, and functions of the standard library, that take a class which only ``full`` defines:
  no value of it can be had, and the library's are templates that deduce it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from gym_kernel.evaluator.declared_names import Declaration, Kind

__all__ = ["HiddenName", "Mentions", "Place", "hidden_names", "mentions_of"]

# Of these a program finds names without any word for it: it names them all the time, or their classes are everywhere.
_EVERYWHERE = frozenset({(), ("at",), ("c10",), ("torch",), ("std",)})
_TYPES = (Kind.TYPE, Kind.DEFINITION, Kind.NAMESPACE)
# What looks at more than names.
_UNSURE = re.compile(r"##|%:|\\u|\\U|\?\?=|__COUNTER__|__INCLUDE_LEVEL__|__has_include|#\s*include")
_OWN_FILE = re.compile(r"^\s*#\s*include(?:_next)?\s*[^<\s]", re.MULTILINE)
_NOISE = re.compile(
    r"""//[^\n]*|/\*(?s:.*?)\*/|(?:u8|u|U|L)?R"(?P<tag>[^()\s\\]{0,16})\((?s:.*?)\)(?P=tag)"|"(?:[^"\\\n]|\\.)*\""""
    r"""|(?<![\w'])'(?:[^'\\\n]|\\.)+'|^[ \t]*\#[ \t]*include[^\n]*|<<<|>>>""",
    re.MULTILINE,
)
_MENTION = re.compile(r"(?P<member>(?:\.|->)\s*)?\b(?P<name>[A-Za-z_]\w*)(?P<scope>\s*::)?")


class Place(str, Enum):
    """Where in a program a name can stand."""

    NAMESPACE = "before ::"
    TYPE = "anywhere"
    OTHER = "not before ::"


@dataclass(frozen=True)
class HiddenName:
    """A name that only the larger headers declare.

    Attributes:
        name: The name, or an operator's symbol.
        needs: Namespace that has to be mentioned as well for the name to be found; empty where none has to.
        place: Where in a program it can stand.
        cure: Preprocessor line with which the smaller headers declare it too; empty where there is none.
    """

    name: str
    needs: str
    place: Place
    cure: str = ""


@dataclass(frozen=True)
class Mentions:
    """What a program's text mentions.

    Attributes:
        names: Identifiers that lookup may have to find.
        scopes: Identifiers before ``::``.
        text: The text without comments, literals and includes.
    """

    names: frozenset[str]
    scopes: frozenset[str]
    text: str

    def find(self, hidden: HiddenName) -> bool:
        """Whether the program may find this name."""
        if hidden.needs and hidden.needs not in self.names and hidden.needs not in self.scopes:
            return False
        if not hidden.name.isidentifier():
            return hidden.name in self.text
        if hidden.place is Place.NAMESPACE:
            # Otherwise only an alias or a using-directive looks for it.
            return hidden.name in self.scopes or (hidden.name in self.names and "namespace" in self.names)
        return hidden.name in self.names or (hidden.place is Place.TYPE and hidden.name in self.scopes)


def mentions_of(code: str) -> Mentions | None:
    """Collect what a program mentions.

    Args:
        code: C++ or CUDA, not preprocessed.

    Returns:
        The mentions; ``None`` where the text does not tell (pasted tokens, files of its own).
    """
    joined = code.replace("\\\r\n", "").replace("\\\n", "")
    bare = _NOISE.sub(lambda match: "" if match[0][0] in "#\t" else " ", joined)
    if _UNSURE.search(bare) or _OWN_FILE.search(joined):
        return None
    names: set[str] = set()
    scopes: set[str] = set()
    for match in _MENTION.finditer(bare):
        if not match["member"]:
            (scopes if match["scope"] else names).add(match["name"])
    return Mentions(frozenset(names), frozenset(scopes), bare)


def hidden_names(
    full: Iterable[Declaration],
    light: Sequence[Declaration],
    macros: Iterable[str],
    cure: Callable[[Declaration], str] = lambda _: "",
) -> frozenset[HiddenName]:
    """Names that a program can find in ``full`` and not, or not all of their declarations, in ``light``.

    Args:
        full: Declarations of the larger headers.
        light: Declarations of their part.
        macros: Macros that only the larger headers define.
        cure: Tells for a declaration the line that brings it to the smaller headers.
    """
    known = {(d.kind, d.scope, d.name) for d in light}
    placed = {(d.kind, d.scope, d.name, d.file, d.line) for d in light}
    opened = {d.scope[:i] for d in light for i in range(len(d.scope) + 1)}
    with_classes = {d.scope for d in light if d.kind in (Kind.TYPE, Kind.DEFINITION)}
    defined = {(d.scope, d.name) for d in light if d.kind is Kind.DEFINITION}
    missing: list[Declaration] = []
    only_there: dict[str, set[tuple[str, ...]]] = {}
    for d in full:
        if d.kind is Kind.DEFINITION and (d.scope, d.name) not in defined:
            only_there.setdefault(d.name, set()).add(d.scope)
        if d.scope in opened and not _is_known(d, known, placed):
            missing.append(d)
    found = {HiddenName(name, "", Place.TYPE) for name in macros}
    for d in missing:
        ungiven = d.kind in (Kind.OPERATOR, Kind.SPECIALISATION) or d.scope[:1] == ("std",)
        if ungiven and _takes_one_of(d, only_there):
            continue
        if d.kind is Kind.DIRECTIVE:
            # It changes every lookup in its namespace.
            found.add(HiddenName(d.scope[-1] if d.scope else d.name, "", Place.TYPE))
            continue
        found.add(HiddenName(d.name, _needed(d, with_classes), _place(d), cure(d)))
    return frozenset(found)


def _takes_one_of(d: Declaration, classes: dict[str, set[tuple[str, ...]]]) -> bool:
    """Whether a declaration mentions a class as it is found from there, with one more namespace or without."""
    inside = [d.scope[:i] for i in range(len(d.scope) + 1)]
    places = {(*scope, *more) for scope in inside for more in ((), *((name,) for name in d.mentions))}
    return any(classes.get(name, set()) & places for name in d.mentions)


def _is_known(
    d: Declaration,
    known: set[tuple[Kind, tuple[str, ...], str]],
    placed: set[tuple[Kind, tuple[str, ...], str, str, int]],
) -> bool:
    if d.kind in _TYPES:
        return (d.kind, d.scope, d.name) in known or (Kind.TYPE, d.scope, d.name) in known
    if d.kind is Kind.USING and len(d.mentions) == 1:
        # A single thing, without overloads: which of the ways it is found does not matter.
        home = tuple(d.mentions)
        single = any((kind, home, d.name) in known for kind in (Kind.TYPE, Kind.OTHER))
        if single and (Kind.FUNCTION, home, d.name) not in known:
            return True
    return (d.kind, d.scope, d.name, d.file, d.line) in placed


def _place(d: Declaration) -> Place:
    if d.kind is Kind.NAMESPACE:
        return Place.NAMESPACE
    return Place.OTHER if d.kind in (Kind.FUNCTION, Kind.OPERATOR) else Place.TYPE


def _needed(d: Declaration, with_classes: set[tuple[str, ...]]) -> str:
    scope = d.scope
    while scope and scope[-1].startswith("_"):
        # Namespaces of an implementation, which is in league with the one round it.
        scope = scope[:-1]
    if scope in _EVERYWHERE or (d.kind is Kind.FUNCTION and scope in with_classes):
        return ""
    return scope[-1]
