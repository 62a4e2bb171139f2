"""Going over kernels: expressions of a statement, statements of a body, the symbols they need, what names stand for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

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
    Var,
    While,
)
from sardonyx.sizes import Size, symbols

__all__ = [
    "SIGNED_VARIABLE",
    "VARIABLE",
    "Names",
    "expressions",
    "is_variable",
    "sizes_of",
    "statements",
    "symbols_of",
    "with_values",
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


def with_values(body: Iterable[Statement], change: Callable[[Expr], Expr]) -> tuple[Statement, ...]:
    """The statements with other expressions for what they bind and store; conditions stay."""

    def changed(one: Statement) -> Statement:
        if isinstance(one, (For, While)):
            return replace(one, body=with_values(one.body, change))
        if isinstance(one, If):
            then, other = with_values(one.then, change), with_values(one.other, change)
            return replace(one, then=then, other=other)
        if isinstance(one, (Let, Local, Set, Store)):
            return replace(one, value=change(one.value))
        return one

    return tuple(changed(one) for one in body)


class Names:
    """What the names of a body stand for.

    Attributes:
        uses: how often each is read.
        values: of those that never change.
    """

    def __init__(self, body: Iterable[Statement]) -> None:
        every = list(statements(body))
        self.uses = Counter(p.name for one in every for p in expressions(one) if isinstance(p, Var))
        self.values = {one.name: one.value for one in every if isinstance(one, Let)}

    def alone(self, value: Expr) -> Expr:
        """What a name stands for that nobody else reads."""
        while isinstance(value, Var) and self.uses[value.name] == 1 and value.name in self.values:
            value = self.values[value.name]
        return value
