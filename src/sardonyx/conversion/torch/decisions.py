"""Where a function's Python takes a turn by the value of a tensor, found in its source."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import TypeGuard

__all__ = ["Decision", "decisions_of", "function_of", "is_conversion"]

_NOT_DATA = ("shape", "dtype", "device", "ndim", "training")


@dataclass(frozen=True)
class Decision:
    """One test that data decide.

    Attributes:
        statement: the if, while, for, conditional expression or assert.
        first, last: the lines of the test, in the user's file.
    """

    statement: ast.AST
    first: int
    last: int


def function_of(code: CodeType) -> ast.FunctionDef | None:
    """The syntax of a function with the line numbers of its file; None where there is no source, or it is a lambda."""
    try:
        lines, start = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None
    found = tree.body[0] if tree.body else None
    if not isinstance(found, ast.FunctionDef):
        return None
    ast.increment_lineno(tree, max(start, 1) - 1)
    return found


def decisions_of(function: ast.FunctionDef, lines: Iterable[int]) -> list[Decision]:
    """The tests that data decide, given the lines at which a tensor was made a Python value.

    A test is such a one if it has such a line, or reads a name whose value comes from one.
    """
    seen = set(lines)
    names = _decided_names(function, seen)
    found = []
    for node in ast.walk(function):
        test = _test_of(node)
        if test is not None and _is_decided(test, seen, names):
            found.append(Decision(node, test.lineno, test.end_lineno or test.lineno))
    return found


def _test_of(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        return node.test
    if isinstance(node, ast.For) and _is_range(node.iter):
        return node.iter
    return None


def _is_range(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
    )


def _decided_names(function: ast.FunctionDef, lines: set[int]) -> set[str]:
    """Names whose values come from a line at which data became a Python value; to a fixed point."""
    assigned = list(_assignments(function))
    names: set[str] = set()
    while True:
        new = {
            name
            for targets, value in assigned
            for name in targets - names
            if _takes_number(value, lines) or _reads(value, names)
        }
        if not new:
            return names
        names |= new


def _assignments(function: ast.FunctionDef) -> Iterator[tuple[set[str], ast.expr]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            yield {n.id for t in node.targets for n in ast.walk(t) if _stored(n)}, node.value
        elif isinstance(node, ast.AugAssign | ast.AnnAssign) and node.value is not None:
            if isinstance(node.target, ast.Name):
                yield {node.target.id}, node.value
        elif isinstance(node, ast.NamedExpr):
            yield {node.target.id}, node.value


def _stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _takes_number(value: ast.expr, lines: set[int]) -> bool:
    """`int(t)`, `t.item()` and the like, at a line where a tensor was made a number."""
    return any(
        isinstance(node, ast.Call) and is_conversion(node) and _spans(node, lines)
        for node in ast.walk(value)
    )


def is_conversion(node: ast.Call) -> bool:
    """`int(…)`, `float(…)`, `bool(…)` or `….item()`."""
    if isinstance(node.func, ast.Name):
        return node.func.id in ("int", "float", "bool") and len(node.args) == 1
    return isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args


def _is_decided(test: ast.expr, lines: set[int], names: set[str]) -> bool:
    return _spans(test, lines) or _reads(test, names)


def _spans(node: ast.expr, lines: set[int]) -> bool:
    return any(node.lineno <= line <= (node.end_lineno or node.lineno) for line in lines)


def _reads(node: ast.AST, names: set[str]) -> bool:
    """Whether a value is read; what a tensor's shape or type says is none of its data."""
    if isinstance(node, ast.Attribute) and node.attr in _NOT_DATA:
        return False
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
        return False
    if isinstance(node, ast.Call):
        called = node.func
        name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
        if name in ("isinstance", "len", "size", "dim", "hasattr"):
            return False
    if isinstance(node, ast.Name):
        return node.id in names
    return any(_reads(child, names) for child in ast.iter_child_nodes(node))
