"""A courtesy look at a submission's source before anything of it runs.

It saves a policy the cost of a run that cannot succeed and says why, with a line number. It is not the
defence against cheating, which is run-time evidence; so it holds only rules that an honest kernel never
breaks. ``try``, ``pass`` and comments are innocent.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["SourceFinding", "check_source"]

_CLASS = "ModelNew"
_EVALUATOR = "gym_kernel"
_FORWARDS = {"forward", "__call__"}
_SHOWN_CHARS = 160
# A line that begins like one of a module: prose has none.
_PYTHON = re.compile(r"^\s*(?:import \w|from \w+(?:\.\w+)* import|class \w|def \w|@\w|\w+ *=)", re.MULTILINE)


@dataclass(frozen=True)
class SourceFinding:
    """One reason to turn a submission away.

    Attributes:
        line: Line of the source, counted from 1.
        message: One sentence to the policy.
    """

    line: int
    message: str


def check_source(code: str) -> tuple[SourceFinding, ...]:
    """Look for what makes a submission unusable whatever it computes.

    Args:
        code: Source of the candidate's module.

    Returns:
        Findings in the order of their lines; empty where nothing speaks against running it. Nothing in
        ``code`` makes this raise.
    """
    try:
        with warnings.catch_warnings():
            # A bad escape sequence is a warning, and the worker's stderr is no place for it.
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
            findings = [*_missing_class(tree), *_missing_forward(tree), *_reaches_for_evaluator(tree)]
            compile(tree, "<submission>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return (_syntax_finding(error, code),)
    except (RecursionError, MemoryError):
        return (SourceFinding(1, "The source is nested too deeply for Python to parse; write it flatter."),)
    except (ValueError, OverflowError, SystemError) as error:
        return (_unreadable(error, code),)
    return tuple(sorted([*findings, *_foreign_encoding(code)], key=lambda finding: finding.line))


def _foreign_encoding(code: str) -> Iterator[SourceFinding]:
    """The module is written to a file in UTF-8, and a cookie would make Python read it as something else."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(code.encode("utf-8")).readline)
    except SyntaxError as error:
        yield SourceFinding(1, f"SyntaxError: {error.msg}; leave the coding line out.")
        return
    if encoding not in ("utf-8", "utf-8-sig"):
        yield SourceFinding(1, f"The coding line says {encoding}; leave it out, the source is read as UTF-8.")


def _syntax_finding(error: SyntaxError, code: str) -> SourceFinding:
    if "\0" in code:
        return _unreadable(error, code)
    line = max(error.lineno or 1, 1)
    lines = code.splitlines()
    shown = (error.text or (lines[line - 1] if line <= len(lines) else "")).strip()[:_SHOWN_CHARS]
    quoted = f": `{shown}`" if shown else ""
    hint = (
        ""
        if _PYTHON.search(code)
        else ". There is no module here: give the whole of it in one ```python block"
    )
    return SourceFinding(line, f"{type(error).__name__}: {error.msg}{quoted}{hint}")


def _unreadable(error: Exception, code: str) -> SourceFinding:
    if "\0" in code:
        line = code[: code.index("\0")].count("\n") + 1
        return SourceFinding(line, "The source contains a null byte; remove it.")
    if isinstance(error, UnicodeError):
        return SourceFinding(1, "The source contains characters that UTF-8 cannot encode; remove them.")
    return SourceFinding(1, f"Python cannot read the source: {error}.")


def _missing_class(tree: ast.Module) -> Iterator[SourceFinding]:
    statements = list(_module_statements(tree.body))
    if any(_CLASS in _names_bound(statement) for statement in statements):
        return
    model = next((s for s in statements if isinstance(s, ast.ClassDef) and s.name == "Model"), None)
    if model is not None:
        yield SourceFinding(model.lineno, f"There is no class {_CLASS}; name this one {_CLASS}.")
    else:
        yield SourceFinding(
            1,
            f"There is no class {_CLASS}. Define `class {_CLASS}(torch.nn.Module)` at module level, with the "
            "reference's constructor and forward signature.",
        )


def _missing_forward(tree: ast.Module) -> Iterator[SourceFinding]:
    """``ModelNew`` without a forward, judged only where every base class is in sight."""
    classes = {s.name: s for s in _module_statements(tree.body) if isinstance(s, ast.ClassDef)}
    model = classes.get(_CLASS)
    if model is None or _patched_later(tree):
        return
    pending, seen = [model], set()
    while pending:
        definition = pending.pop()
        if definition.name in seen:
            continue
        seen.add(definition.name)
        if definition.decorator_list or definition.keywords or _has_forward(definition):
            return
        for base in definition.bases:
            name = ast.unparse(base)
            if name in classes:
                pending.append(classes[name])
            elif name not in ("nn.Module", "torch.nn.Module", "Module", "object"):
                return
    yield SourceFinding(
        model.lineno, f"{_CLASS} has no forward method. Give it the reference's forward signature."
    )


def _has_forward(definition: ast.ClassDef) -> bool:
    return any(_FORWARDS & set(_names_bound(statement)) for statement in _module_statements(definition.body))


def _patched_later(tree: ast.Module) -> bool:
    """Whether something is assigned to an attribute of ``ModelNew``, or ``setattr`` is used on it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id == _CLASS:
                return True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            return True
    return False


def _reaches_for_evaluator(tree: ast.Module) -> Iterator[SourceFinding]:
    for node in ast.walk(tree):
        if any(name.split(".")[0] == _EVALUATOR for name in _modules_imported(node)):
            yield SourceFinding(
                getattr(node, "lineno", 1),
                f"The submission imports {_EVALUATOR}, which judges it. Remove the import: a kernel needs "
                "only torch and triton.",
            )


def _modules_imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module] if node.module and not node.level else []
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = ast.unparse(node.func)
        if called in ("__import__", "import_module", "importlib.import_module"):
            return [node.args[0].value] if isinstance(node.args[0].value, str) else []
    return []


def _module_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when a body does, those inside ``if``, ``try``, ``with`` and loops included."""
    pending = list(reversed(body))
    while pending:
        statement = pending.pop()
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            for child in getattr(statement, field, []):
                pending.extend([child] if isinstance(child, ast.stmt) else child.body)


def _names_bound(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        # A star import may bind anything.
        return [_CLASS if alias.name == "*" else alias.asname or alias.name for alias in statement.names]
    if isinstance(statement, ast.Assign):
        return [n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign)) and isinstance(statement.target, ast.Name):
        return [statement.target.id] if statement.value is not None else []
    return []
