"""Going over kernels: expressions of a statement, statements of a body, the symbols they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sardonyx.loops.nodes import (
    Apply,
    Cast,
    Expr,
    Fail,
    For,
    If,
    Index,
    Let,
    Load,
    Local,
    Select,
    Set,
    Statement,
    Store,
    While,
)
from sardonyx.sizes import Size, symbols

__all__ = [
    "SIGNED_VARIABLE",
    "VARIABLE",
    "expressions",
    "is_variable",
    "sizes_of",
    "statements",
    "symbols_of",
]

VARIABLE = "%"  # loop variables and indices that are at least 0; no symbol of a model begins so
SIGNED_VARIABLE = "#%"  # indices that may be negative: `sizes` assumes nothing of them


def is_variable(name: str) -> bool:
    """Whether a symbol is bound inside the kernel: by a loop or a Let."""
    return name.startswith((VARIABLE, SIGNED_VARIABLE))


def statements(body: Iterable[Statement]) -> Iterator[Statement]:
    """Every statement, outer ones before inner ones."""
    for statement in body:
        yield statement
        if isinstance(statement, (For, While)):
            yield from statements(statement.body)
        elif isinstance(statement, If):
            yield from statements(statement.then)
            yield from statements(statement.other)


def expressions(statement: Statement) -> Iterator[Expr]:
    """Every expression of the statement itself, outer ones first; not those of inner statements."""
    pending: list[Expr] = []
    if isinstance(statement, (Let, Local, Set, Store)):
        pending.append(statement.value)
    elif isinstance(statement, (If, While)):
        pending.append(statement.condition)
    elif isinstance(statement, Fail):
        pending += [statement.value, statement.limit]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, Apply):
            pending += current.args
        elif isinstance(current, Select):
            pending += [current.condition, current.then, current.other]
        elif isinstance(current, Cast):
            pending.append(current.value)


def sizes_of(statement: Statement) -> Iterator[Size]:
    """Index arithmetic of the statement itself."""
    if isinstance(statement, For):
        yield statement.extent
        yield statement.grain
    elif isinstance(statement, Store):
        yield statement.offset
    for expression in expressions(statement):
        if isinstance(expression, Index):
            yield expression.size
        elif isinstance(expression, Load):
            yield expression.offset


def symbols_of(body: Iterable[Statement]) -> frozenset[str]:
    """Every symbol in index arithmetic, bound inside or not."""
    found: set[str] = set()
    for statement in statements(body):
        for size in sizes_of(statement):
            found |= symbols(size)
    return frozenset(found)
