"""What nothing uses any more, left out: the last step of every rewriting.

t0: f32 = erf(x[i])
t1: f32 = gelu(x[i])         ->        t1: f32 = gelu(x[i])
y[i] = t1                              y[i] = t1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sardonyx.loops.nodes import For, If, Let, Statement, Var, While
from sardonyx.loops.walk import expressions, sizes_of
from sardonyx.sizes import symbols

__all__ = ["without_dead"]


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
