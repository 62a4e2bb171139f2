"""Building and reading Python's syntax trees."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from typing import TypeVar

__all__ = [
    "HELPERS",
    "assign",
    "assign_one",
    "call_helper",
    "function_def",
    "jumps_of",
    "located",
    "name_of",
    "names_read",
    "names_written",
    "never_goes_on",
    "own_statements",
    "thunk",
    "tuple_of",
    "without_jumps",
    "without_raises",
]

HELPERS = "_sardonyx_control_flow"  # what a rewritten function finds `control_flow` by
Jump = ast.Return | ast.Break | ast.Continue
_Node = TypeVar("_Node", bound=ast.AST)


def call_helper(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(name_of(HELPERS), name, ast.Load()), list(arguments), [])


def name_of(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def thunk(value: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def tuple_of(names: Sequence[str]) -> ast.expr:
    return ast.Tuple([name_of(name) for name in names], ast.Load())


def assign(names: Sequence[str], value: ast.expr) -> ast.stmt:
    if not names:
        return ast.Expr(value)
    return ast.Assign([ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())], value)


def assign_one(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def function_def(name: str, names: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    function = ast.FunctionDef(name, arguments, body or [ast.Pass()], [])
    if sys.version_info >= (3, 12):
        function.type_params = []
    return function


def located(node: _Node, where: ast.AST) -> _Node:
    """New syntax stands at the line that it came from; what has a place of its own keeps it."""
    ast.copy_location(node, where)
    return ast.fix_missing_locations(node)


def own_statements(body: Sequence[ast.stmt]) -> Iterable[ast.stmt]:
    """Statements that belong to this function and this loop."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from own_statements([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.With):
            yield from own_statements(statement.body)


def jumps_of(body: Sequence[ast.stmt]) -> list[Jump]:
    """Returns anywhere in these statements, and breaks and continues of the loop that they stand in."""
    own = [s for s in own_statements(body) if isinstance(s, Jump)]
    loops = [s for s in own_statements(body) if isinstance(s, ast.For | ast.While)]
    returns = [n for s in loops for n in ast.walk(s) if isinstance(n, ast.Return)]
    return own + returns


def never_goes_on(body: Sequence[ast.stmt]) -> bool:
    """Whether a block never goes on to what follows it."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return never_goes_on(last.body) and never_goes_on(last.orelse)
    return isinstance(last, Jump | ast.Raise)


def without_jumps(body: Sequence[ast.stmt], stop: str) -> list[ast.stmt]:
    """The block with its last break as a flag; nothing follows it any more."""
    if body and isinstance(body[-1], ast.Break):
        return [*body[:-1], located(assign_one(stop, ast.Constant(True)), body[-1])]
    if body and isinstance(body[-1], ast.Continue):
        return list(body[:-1])
    return list(body)


def without_raises(statement: ast.If) -> list[ast.stmt] | None:
    """What is left of an if one of whose sides only raises: the other side."""
    if statement.body and isinstance(statement.body[-1], ast.Raise):
        return statement.orelse
    if statement.orelse and isinstance(statement.orelse[-1], ast.Raise):
        return statement.body
    return None


def names_read(body: Iterable[ast.stmt]) -> set[str]:
    return {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
        and not isinstance(node.ctx, ast.Del)
        and (isinstance(node.ctx, ast.Load))
    } | {
        statement.target.id
        for outer in body
        for statement in ast.walk(outer)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name)
    }


def names_written(body: Iterable[ast.stmt]) -> set[str]:
    """Names that statements give a value, or write into: `x = …`, `x[i] = …`, `x.add_(…)`."""
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                found |= _base(node.value)
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr.endswith("_")
                and not node.func.attr.endswith("__")
            ):
                found |= _base(node.func.value)
    return found


def _base(node: ast.expr) -> set[str]:
    """The name that something is written into; a module's own tensors have none."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()
