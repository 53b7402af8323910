"""Which names a preprocessed C++ unit declares where a program that includes it can find them.

Two sets of headers, one a part of the other, mean the same to a program that mentions nothing which only the larger
one declares. What a program can mention are declarations at the scope of namespaces: functions, classes, variables,
aliases, enumerators, operators, specialisations of templates. This module reads them out of a compiler's ``-E``
output, each with the place in the header that it comes from, so that overloads count one by one.

It errs to the side of too many: a name that is taken for a declaration and is none costs time, never meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Declaration", "Kind", "declarations"]


class Kind(str, Enum):
    """What a declaration declares."""

    NAMESPACE = "namespace"
    TYPE = "type"
    DEFINITION = "type with its body"
    FUNCTION = "function"
    USING = "using"
    SPECIALISATION = "specialisation"
    OPERATOR = "operator"
    DIRECTIVE = "using namespace"
    OTHER = "other"


@dataclass(frozen=True)
class Declaration:
    """One declaration at the scope of a namespace.

    Attributes:
        kind: What it declares.
        scope: Names of the namespaces it stands in, outermost first, without unnamed ones.
        name: Its name; for an operator its symbol, for a using-directive the namespace's last name.
        file: Header it stands in.
        line: Line of that header.
        mentions: Identifiers in the parameters of an operator or a function, in a specialisation's arguments, or of
            the namespace that a using-declaration takes its name from.
    """

    kind: Kind
    scope: tuple[str, ...]
    name: str
    file: str
    line: int
    mentions: frozenset[str] = frozenset()


_TOKEN = re.compile(
    r"""
    (?P<newline>\n)
  | ^\#\s(?P<line>\d+)\s"(?P<file>[^"\n]*)"[^\n]*
  | ^\#[^\n]*
  | (?:u8|u|U|L)?R"(?P<tag>[^()\s\\]{0,16})\((?s:.*?)\)(?P=tag)"
  | (?P<string>(?:u8|u|U|L)?"(?:[^"\\\n]|\\.)*")
  | (?<![\w'])'(?:[^'\\\n]|\\.)+'
  | (?P<word>[A-Za-z_$][\w$]*)
  | \.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*
  | (?P<sign>::|->|\S)
    """,
    re.VERBOSE | re.MULTILINE,
)
_TYPE_KEYS = frozenset({"class", "struct", "union", "enum"})
_NO_NAMES = frozenset(
    "alignas alignof asm __asm__ __attribute__ __attribute __declspec decltype explicit noexcept requires sizeof "
    "static_assert _Static_assert throw typeof __typeof__ if for while return const volatile int void auto bool char "
    "short long float double unsigned signed default delete final override public private protected __extension__ "
    "_Pragma __pragma class struct union enum typename template using namespace typedef static inline constexpr "
    "consteval constinit extern operator friend virtual mutable register thread_local this new delete do else switch "
    "case".split()
)
_ATTRIBUTES = frozenset({"__attribute__", "__attribute", "__declspec", "alignas"})


def declarations(preprocessed: str) -> Iterator[Declaration]:
    """Read the declarations out of a unit.

    Args:
        preprocessed: What the compiler's ``-E`` wrote, line markers included.

    Yields:
        Declarations in their order.
    """
    return _Reader(preprocessed).read()


@dataclass
class _Statement:
    """Tokens since the last end of a declaration, with the line of each."""

    words: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def clear(self) -> None:
        self.words.clear()
        self.lines.clear()


class _Reader:
    def __init__(self, text: str) -> None:
        self._matches = _TOKEN.finditer(text)
        self._file = ""
        self._line = 1
        self._scope: list[tuple[str, ...]] = []
        self._inline: set[str] = set()

    def read(self) -> Iterator[Declaration]:
        statement = _Statement()
        parentheses = 0
        for token in self._tokens():
            if token == "{" and parentheses == 0:
                entered = self._namespaces_opened(statement.words)
                if entered is None:
                    yield from self._declared(statement, is_body=True)
                    if _opens_enumerators(statement.words):
                        yield from self._enumerators()
                    else:
                        self._skip_braces()
                    if _ends_with_its_braces(statement.words):
                        statement.clear()
                    else:
                        # A class or an initialiser; declarators or a semicolon follow.
                        statement.words.append("{}")
                        statement.lines.append(self._line)
                    continue
                for depth, name in enumerate(entered):
                    yield self._make(Kind.NAMESPACE, name, self._line, inside=entered[:depth])
                self._scope.append(entered)
                statement.clear()
            elif token == "{":
                self._skip_braces()
            elif token == "}":
                if self._scope:
                    self._scope.pop()
                statement.clear()
            elif token == ";" and parentheses == 0:
                yield from self._declared(statement, is_body=False)
                statement.clear()
            else:
                parentheses += (token == "(") - (token == ")")
                statement.words.append(token)
                statement.lines.append(self._line)

    def _tokens(self) -> Iterator[str]:
        for match in self._matches:
            kind = match.lastgroup
            if kind == "newline":
                self._line += 1
            elif kind == "file":
                # The newline that ends the marker is still to come.
                self._file, self._line = match["file"], int(match["line"]) - 1
            elif kind == "word" or kind == "sign":
                yield match[kind]
            elif kind == "string":
                yield '""'
            elif kind == "tag":
                self._line += match[0].count("\n")
                yield '""'

    def _namespaces_opened(self, words: list[str]) -> tuple[str, ...] | None:
        """Names of what a brace after these words opens; ``None`` where it is no namespace's."""
        if words[-2:] == ["extern", '""']:
            return ()
        if words[:2] == ["inline", "namespace"]:
            self._inline.update(_names_of_namespaces(words[2:]))
        elif words[:1] != ["namespace"]:
            return None
        # Seen from outside, what is in an inline one is in the one round it, however it is opened the next time.
        return tuple(name for name in _names_of_namespaces(words) if name not in self._inline)

    def _skip_braces(self) -> None:
        depth = 1
        for token in self._tokens():
            depth += (token == "{") - (token == "}")
            if depth == 0:
                return

    def _enumerators(self) -> Iterator[Declaration]:
        depth, expected = 0, True
        for token in self._tokens():
            if token == "}" and depth == 0:
                return
            if expected and (token[0].isalpha() or token[0] == "_"):
                yield self._make(Kind.OTHER, token, self._line)
                expected = False
            depth += (token in "({[") - (token in ")}]")
            expected = expected or (token == "," and depth == 0)

    def _make(
        self,
        kind: Kind,
        name: str,
        line: int,
        *,
        inside: tuple[str, ...] = (),
        mentions: frozenset[str] = frozenset(),
    ) -> Declaration:
        scope = tuple(name for names in (*self._scope, inside) for name in names)
        return Declaration(kind, scope, name, self._file, line, mentions)

    def _declared(self, statement: _Statement, *, is_body: bool) -> Iterator[Declaration]:
        words, lines, is_template = _without_template_parameters(*_without_attributes(statement))
        if not words:
            return
        if words[0] == "using" and "=" not in words:
            names = [word for word in words if word.isidentifier()]
            kind = Kind.DIRECTIVE if words[1:2] == ["namespace"] else Kind.USING
            yield self._make(kind, names[-1], lines[-1], mentions=frozenset(names[1:-1]))
            return
        if words[0] == "using":
            yield self._make(Kind.OTHER, words[1], lines[1])
            return
        depth = angles = 0
        initialises = False
        after = [*words[1:], "{" if is_body else ";"]
        for i, (word, line, following) in enumerate(zip(words, lines, after, strict=True)):
            previous = words[i - 1] if i else ""
            if word == "operator" and depth == 0:
                # A member's definition, outside of its class, declares nothing.
                if previous != "::":
                    yield from self._operator(words[i + 1 :], line)
                return
            if word in ("(", ")", "[", "]"):
                depth += (word in "([") - (word in ")]")
                continue
            if word in ("<", ">", "="):
                # What initialises a variable compares, as far as anybody knows here.
                initialises = initialises or (word == "=" and depth == 0)
                angles = 0 if initialises else max(0, angles + (word == "<") - (word == ">"))
                continue
            if not word.isidentifier() or word in _NO_NAMES:
                continue
            if depth:
                # A pointer to a function, or a name in parentheses.
                if _is_declarator(words, i):
                    yield self._make(Kind.OTHER, word, line)
                continue
            if previous in _TYPE_KEYS or (previous == "]" and _TYPE_KEYS & set(words[:i])):
                if following == "<":
                    yield self._make(Kind.SPECIALISATION, word, line, mentions=_words(words[i + 2 :]))
                elif following != "::":
                    yield self._make(Kind.TYPE, word, line)
                    if is_body:
                        yield self._make(Kind.DEFINITION, word, line)
            elif following == "<" and is_template and angles == 0 and previous != "::":
                if _is_specialised(words[i + 1 :]):
                    yield self._make(Kind.SPECIALISATION, word, line, mentions=_words(words[i + 1 :]))
            elif following == "(" and previous != "::":
                yield self._make(Kind.FUNCTION, word, line, mentions=_parameters(words[i + 2 :]))
            elif initialises and previous not in (",", "*", "&"):
                continue
            elif following in "=;[,{" and angles == 0 and previous != "::":
                yield self._make(Kind.OTHER, word, line)

    def _operator(self, rest: list[str], line: int) -> Iterator[Declaration]:
        symbol: list[str] = []
        for i, word in enumerate(rest):
            if word == "(" and (symbol or rest[i + 1 : i + 2] != [")"]):
                yield self._make(Kind.OPERATOR, "".join(symbol), line, mentions=_parameters(rest[i + 1 :]))
                return
            symbol.append(word)


def _words(tokens: list[str]) -> frozenset[str]:
    return frozenset(word for word in tokens if word.isidentifier())


def _names_of_namespaces(words: list[str]) -> tuple[str, ...]:
    depth, names = 0, []
    for word in words:
        depth += (word in "([") - (word in ")]")
        if depth == 0 and word.isidentifier() and word not in _NO_NAMES:
            names.append(word)
    return tuple(names)


def _opens_enumerators(words: list[str]) -> bool:
    """Whether a brace after these words opens an enumeration whose names are seen outside of it."""
    if "enum" not in words:
        return False
    after = words[words.index("enum") + 1 :]
    return ")" not in after and after[:1] not in (["class"], ["struct"])


def _ends_with_its_braces(words: list[str]) -> bool:
    """Whether a body follows these words that no semicolon has to follow: a function's."""
    if _TYPE_KEYS & set(words[:1]) or ")" not in words:
        return False
    depth, naming = 0, False
    for word in words:
        # The sign of an operator that is being defined initialises nothing.
        naming = word == "operator" or (naming and word != "(")
        depth += (word == "(") - (word == ")")
        if word == "=" and depth == 0 and not naming:
            return False
    return True


def _parameters(words: list[str]) -> frozenset[str]:
    """Identifiers up to the parenthesis that closes the one before these words."""
    depth = 1
    for i, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if depth == 0:
            return _words(words[:i])
    return _words(words)


def _is_declarator(words: list[str], i: int) -> bool:
    """Whether a name inside parentheses is what is declared: ``(*name)(int)``, ``(name)(int)``."""
    if words[i - 1] == "(":
        return words[i + 1 : i + 2] == [")"] and words[i + 2 : i + 3] == ["("]
    if words[i - 1] not in ("*", "&") or words[i + 1 : i + 2] not in ([")"], ["["]):
        return False
    opening = i - 1
    while opening >= 0 and words[opening] in ("*", "&", "const"):
        opening -= 1
    return opening >= 0 and words[opening] in ("(", "::")


def _without_attributes(statement: _Statement) -> tuple[list[str], list[int]]:
    if not _ATTRIBUTES & set(statement.words):
        return statement.words, statement.lines
    words: list[str] = []
    lines: list[int] = []
    skipping, depth = False, 0
    for word, line in zip(statement.words, statement.lines, strict=True):
        if word in _ATTRIBUTES and not skipping:
            skipping, depth = True, 0
        elif skipping:
            depth += (word == "(") - (word == ")")
            skipping = depth > 0
        else:
            words.append(word)
            lines.append(line)
    return words, lines


def _is_specialised(words: list[str]) -> bool:
    depth = 0
    for i, word in enumerate(words):
        depth += (word == "<") - (word == ">")
        if depth == 0:
            return i + 1 == len(words) or words[i + 1] in ("=", ":", "(", "{}")
    return False


def _without_template_parameters(words: list[str], lines: list[int]) -> tuple[list[str], list[int], bool]:
    start, is_template = 0, False
    while words[start : start + 2] == ["template", "<"]:
        is_template = True
        depth = 0
        for i in range(start + 1, len(words)):
            if words[i] in "(<":
                depth += 1
            elif words[i] in ")>":
                depth -= 1
            if depth == 0:
                start = i + 1
                break
        else:
            return [], [], True
    if start and words[start : start + 1] == ["requires"]:
        # The constraint may hold anything; what follows it is found all the same.
        start += 1
    return words[start:], lines[start:], is_template
