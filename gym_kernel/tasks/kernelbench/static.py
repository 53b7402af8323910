"""What can be read off a problem's text without running it: its integers, and the shapes of its inputs."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Union

__all__ = ["InputFacts", "ModuleFacts", "called_name", "read_module"]

_Value = Union[int, "tuple[_Value, ...]"]

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_MAKERS = frozenset({"rand", "randn", "randint", "ones", "zeros", "empty", "full"})


@dataclass(frozen=True)
class InputFacts:
    """One tensor of ``get_inputs``.

    Attributes:
        expression: What makes it, with the function's local names put in; not to be evaluated.
        shape: Its shape at the module's own sizes; ``None`` where the text does not tell.
        names: Module-level names that its shape is made of.
    """

    expression: ast.expr
    shape: tuple[int, ...] | None
    names: frozenset[str]


@dataclass(frozen=True)
class ModuleFacts:
    """What a problem's text says.

    Attributes:
        tree: The parsed module.
        integers: Module-level integers that a task's sizes may override, with their values, in order.
        derived: Those of them that are made of others, with what makes them.
        frozen: Those of them that something else was made of when the module ran: overriding them would leave that
            as it was.
        inputs: The tensors of ``get_inputs``; ``None`` where its form is not understood.
    """

    tree: ast.Module
    integers: dict[str, int]
    derived: dict[str, ast.expr] = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()
    inputs: tuple[InputFacts, ...] | None = None

    def with_derived(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Sizes with the integers that follow from them."""
        values: dict[str, _Value] = {**self.integers, **sizes}
        changed = dict(sizes)
        for name, expression in self.derived.items():
            value = _evaluate(expression, values)
            if isinstance(value, int) and value != self.integers[name]:
                values[name] = changed[name] = value
        return changed


def read_module(tree: ast.Module) -> ModuleFacts:
    """Read a problem's module.

    Args:
        tree: The parsed text.
    """
    values: dict[str, _Value] = {}
    integers: dict[str, int] = {}
    derived: dict[str, ast.expr] = {}
    frozen: set[str] = set()
    for node in tree.body:
        names, expression = _assignment(node)
        if expression is None:
            frozen |= _names_when_defined(node)
            continue
        value = _evaluate(expression, values)
        plain = [name for name in names if name]
        # Whatever is bound a second time has no one value to scale.
        frozen |= {name for name in plain if name in integers}
        if isinstance(value, int) and names == plain:
            integers.update(dict.fromkeys(plain, value))
            if _names(expression):
                derived.update(dict.fromkeys(plain, expression))
        else:
            frozen |= _names(expression)
        values.update(_bound(node, value))
    frozen |= {name for name in integers if values.get(name) != integers[name]}
    return ModuleFacts(tree, integers, derived, frozenset(frozen) & integers.keys(), _inputs(tree, values))


def called_name(node: ast.Call) -> str:
    """Last part of what a call calls: ``"rand"`` for ``torch.rand(...)``."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _assignment(node: ast.stmt) -> tuple[list[str], ast.expr | None]:
    """Names that a statement binds (an empty one for what is no plain name), and to what."""
    if isinstance(node, ast.Assign):
        targets, value = node.targets, node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets, value = [node.target], node.value
    else:
        return [], None
    return [target.id if isinstance(target, ast.Name) else "" for target in targets], value


def _bound(node: ast.stmt, value: _Value | None) -> dict[str, _Value]:
    bound: dict[str, _Value] = {}
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    for target in targets:
        if isinstance(target, ast.Name) and value is not None:
            bound[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple):
            for part, each in zip(target.elts, value, strict=False):
                if isinstance(part, ast.Name):
                    bound[part.id] = each
    return bound


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _names_when_defined(node: ast.stmt) -> set[str]:
    """Names whose values a statement has used when the module has run: in defaults and class bodies too."""
    if isinstance(node, ast.FunctionDef):
        return set().union(
            *(_names(default) for default in (*node.args.defaults, *node.args.kw_defaults) if default)
        )
    if isinstance(node, ast.ClassDef):
        return set().union(*(_names_when_defined(part) for part in node.body))
    return set() if isinstance(node, (ast.Import, ast.ImportFrom)) else _names(node)


def _evaluate(node: ast.expr, values: Mapping[str, _Value]) -> _Value | None:
    """An integer, or a tuple of such, where the text alone gives one."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return values.get(node.id)
    if isinstance(node, (ast.Tuple, ast.List)):
        return _evaluate_all(node.elts, values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _evaluate(node.operand, values)
        return -inner if isinstance(inner, int) else None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluate(node.left, values), _evaluate(node.right, values)
        if (
            isinstance(left, int)
            and isinstance(right, int)
            and not (isinstance(node.op, ast.FloorDiv) and not right)
        ):
            return _OPERATORS[type(node.op)](left, right)
    return None


def _evaluate_all(nodes: list[ast.expr], values: Mapping[str, _Value]) -> tuple[_Value, ...] | None:
    found: list[_Value] = []
    for node in nodes:
        value = _evaluate(node.value if isinstance(node, ast.Starred) else node, values)
        if value is None:
            return None
        found.extend(value if isinstance(node, ast.Starred) and isinstance(value, tuple) else [value])
    return tuple(found)


def _inputs(tree: ast.Module, values: Mapping[str, _Value]) -> tuple[InputFacts, ...] | None:
    function = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "get_inputs"), None)
    if function is None:
        return None
    local: dict[str, ast.expr] = {}
    for node in function.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            local[node.targets[0].id] = _PutIn(local).put(node.value)
        elif isinstance(node, ast.Return) and isinstance(node.value, (ast.List, ast.Tuple)):
            made = [_PutIn(local).put(part) for part in node.value.elts]
            return tuple(_facts(e, values) for e in made if not isinstance(e, ast.Constant))
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return None
    return None


class _PutIn(ast.NodeTransformer):
    """Replaces local names by what they were assigned."""

    def __init__(self, local: Mapping[str, ast.expr]) -> None:
        self._local = local

    def put(self, node: ast.expr) -> ast.expr:
        """The expression with the local names put in; the original is left as it is."""
        result = self.visit(ast.parse(ast.unparse(node), mode="eval").body)
        assert isinstance(result, ast.expr)
        return result

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._local.get(node.id, node)


def _facts(expression: ast.expr, values: Mapping[str, _Value]) -> InputFacts:
    calls = [n for n in ast.walk(expression) if isinstance(n, ast.Call) and called_name(n) in _MAKERS]
    shapes = [(call, _shape(call, values)) for call in calls]
    known = [(call, shape) for call, shape in shapes if shape is not None]
    if not known:
        return InputFacts(expression, None, frozenset())
    call, shape = max(known, key=lambda pair: math.prod(pair[1]))
    return InputFacts(expression, shape, frozenset(_names(call) & values.keys()))


def _shape(call: ast.Call, values: Mapping[str, _Value]) -> tuple[int, ...] | None:
    arguments = call.args[2:3] if called_name(call) == "randint" else call.args
    found = _evaluate_all(arguments, values)
    if found is not None and len(found) == 1 and isinstance(found[0], tuple):
        found = found[0]
    if found is None or not all(isinstance(each, int) for each in found):
        return None
    return tuple(each for each in found if isinstance(each, int))
