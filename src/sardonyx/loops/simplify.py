"""The same kernel with less in it: what is known before it runs is not left for it to find out.

    for i < 1                              t0: f32 = x[j]
      if i < 4 & j >= 0          ->        y[j] = t0
        t0: f32 = x[4*i + j]
        t1: i64 = 3
        y[4*i + j] = t0

Integers and truth values are computed, also comparisons that the ranges of loops decide; what follows
from them is cut. Floats are left alone: their results stay as they are, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sardonyx.loops.index import provably_at_least
from sardonyx.loops.nodes import (
    Apply,
    Array,
    Cast,
    Const,
    Expr,
    Fail,
    For,
    If,
    Index,
    Kernel,
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
from sardonyx.loops.operations import INTEGERS
from sardonyx.loops.scalars import constant, conversion, function
from sardonyx.loops.walk import expressions, sizes_of
from sardonyx.sizes import Size, substitute, symbols

__all__ = ["simplify", "without_dead"]

EXACT_TYPES = INTEGERS | {"bool"}
TRUE, FALSE = Const(True, "bool"), Const(False, "bool")


def simplify(kernel: Kernel) -> Kernel:
    """An equivalent kernel. Its buffers, symbols and reasons keep their places, used or not."""
    body = _Simplifier().block(kernel.body)
    return replace(kernel, body=without_dead(body, set()))


class _Simplifier:
    """One walk, outermost and first things first; names are unique, so what is known stays known."""

    def __init__(self) -> None:
        self.values: dict[str, Const] = {}  # Lets that are constants
        self.indices: dict[str, Size] = {}  # the integers among them, and loops that turn once
        self.ranges: dict[str, Size] = {}  # the loops that are open

    # Statements

    def block(self, body: Iterable[Statement]) -> tuple[Statement, ...]:
        return tuple(made for statement in body for made in self.statement(statement))

    def statement(self, statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, For):
            return self.loop(statement)
        if isinstance(statement, Let):
            return self.let(statement)
        if isinstance(statement, (Local, Set)):
            return [replace(statement, value=self.expression(statement.value))]
        if isinstance(statement, Array):
            return [statement]
        if isinstance(statement, Store):
            offset, value = self.size(statement.offset), self.expression(statement.value)
            return [Store(statement.buffer, offset, value)]
        if isinstance(statement, If):
            return self.branch(statement)
        if isinstance(statement, While):
            condition = self.expression(statement.condition)
            return [] if condition == FALSE else [While(condition, self.block(statement.body))]
        value, limit = self.expression(statement.value), self.expression(statement.limit)
        return [Fail(statement.reason, value, limit)]

    def loop(self, loop: For) -> Sequence[Statement]:
        extent = self.size(loop.extent)
        if isinstance(extent, int) and extent <= 0:
            return []
        if extent == 1:
            self.indices[loop.var] = 0
            return self.block(loop.body)
        self.ranges[loop.var] = extent
        body = self.block(loop.body)
        del self.ranges[loop.var]
        return [For(loop.var, extent, body, loop.kind, self.size(loop.grain))]

    def let(self, statement: Let) -> Sequence[Statement]:
        value = self.expression(statement.value)
        if not isinstance(value, Const):
            return [Let(statement.name, value)]
        self.values[statement.name] = value
        if value.dtype == "i64":
            self.indices[statement.name] = int(value.value)
        return []

    def branch(self, statement: If) -> Sequence[Statement]:
        condition = self.expression(statement.condition)
        if isinstance(condition, Const):
            return self.block(statement.then if condition.value else statement.other)
        return [If(condition, self.block(statement.then), self.block(statement.other))]

    # Expressions

    def size(self, size: Size) -> Size:
        known = symbols(size) & self.indices.keys()
        return substitute(size, self.indices) if known else size

    def expression(self, value: Expr) -> Expr:
        if isinstance(value, Index):
            size = self.size(value.size)
            return Const(size, "i64") if isinstance(size, int) else Index(size)
        if isinstance(value, Load):
            return Load(value.buffer, self.size(value.offset), value.dtype)
        if isinstance(value, Var):
            return self.values.get(value.name, value)
        if isinstance(value, Cast):
            return _cast(self.expression(value.value), value)
        if isinstance(value, Select):
            condition = self.expression(value.condition)
            then, other = self.expression(value.then), self.expression(value.other)
            if isinstance(condition, Const):
                return then if condition.value else other
            return Select(condition, then, other)
        if isinstance(value, Apply):
            return self.application(
                Apply(value.op, tuple(map(self.expression, value.args)), value.dtype)
            )
        return value

    def application(self, value: Apply) -> Expr:
        numbers = [arg for arg in value.args if isinstance(arg, Const)]
        if len(numbers) == len(value.args) and value.dtype in EXACT_TYPES:
            operation = function(value.op, numbers[0].dtype)
            found = operation(*(constant(one.value, one.dtype) for one in numbers))
            return Const(found, value.dtype)
        if value.op in ("and", "or") and value.dtype == "bool":
            return _logic(value)
        sizes = [_size_of(arg) for arg in value.args]
        if len(sizes) == 2 and sizes[0] is not None and sizes[1] is not None:
            verdict = self.compare(value.op, sizes[0], sizes[1])
            return value if verdict is None else Const(verdict, "bool")
        return value

    def compare(self, op: str, a: Size, b: Size) -> bool | None:
        """What a comparison of indices says for every turn of the loops around it, if that is sure."""
        if op in ("gt", "ge"):
            return self.compare("lt" if op == "gt" else "le", b, a)
        if op == "lt":
            return True if self.below(a, b) else False if self.below(b, a + 1) else None
        if op == "le":
            return True if self.below(a, b + 1) else False if self.below(b, a) else None
        if op in ("eq", "ne"):
            differ = self.below(a, b) or self.below(b, a)
            return None if not differ and a != b else (op == "ne") == differ
        return None

    def below(self, a: Size, b: Size) -> bool:
        return provably_at_least(b, a + 1, self.ranges)


def _cast(inner: Expr, cast: Cast) -> Expr:
    if inner.dtype == cast.dtype:
        return inner
    if isinstance(inner, Const) and cast.dtype in EXACT_TYPES and not cast.mode:
        convert = conversion(inner.dtype, cast.dtype)
        return Const(convert(constant(inner.value, inner.dtype)), cast.dtype)
    return Cast(inner, cast.dtype, cast.mode)


def _logic(value: Apply) -> Expr:
    """`and` and `or` with one truth value that is known."""
    absorbing = FALSE if value.op == "and" else TRUE
    if absorbing in value.args:
        return absorbing
    kept = [arg for arg in value.args if not isinstance(arg, Const)]
    return kept[0] if len(kept) == 1 else value


def _size_of(value: Expr) -> Size | None:
    if isinstance(value, Index):
        return value.size
    return int(value.value) if isinstance(value, Const) and value.dtype == "i64" else None


def without_dead(body: Sequence[Statement], used: set[str]) -> tuple[Statement, ...]:
    """The body without Lets that nothing uses and blocks that do nothing; last statement first."""
    kept: list[Statement] = []
    for statement in reversed(body):
        if isinstance(statement, Let) and statement.name not in used:
            continue
        if isinstance(statement, (For, While)):
            statement = replace(statement, body=without_dead(statement.body, used))
        elif isinstance(statement, If):
            then = without_dead(statement.then, used)
            statement = If(statement.condition, then, without_dead(statement.other, used))
        idle = (isinstance(statement, For) and not statement.body) or (
            isinstance(statement, If) and not statement.then and not statement.other
        )
        if not idle:
            kept.append(statement)
            used |= _names_in(statement)
    return tuple(reversed(kept))


def _names_in(statement: Statement) -> set[str]:
    found = {one.name for one in expressions(statement) if isinstance(one, Var)}
    for size in sizes_of(statement):
        found |= symbols(size)
    return found
