"""Generated Python as data: statements, functions of statements, and what nobody reads taken out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

__all__ = ["Function", "Statement", "function_lines", "without_unread"]

INDENT = "    "
_WIDE = 100


@dataclass(frozen=True)
class Statement:
    """`a, b = expression`, after the functions that the expression calls.

    Attributes:
        targets: names that it gives; "_" for what nobody asks for.
        uses: names that it reads.
    """

    targets: tuple[str, ...]
    expression: str
    uses: frozenset[str]
    functions: tuple[Function, ...] = ()

    @property
    def reads(self) -> frozenset[str]:
        return self.uses.union(*(function.free for function in self.functions))


@dataclass(frozen=True)
class Function:
    """A function inside of another; it may read what stands above it.

    Attributes:
        returns: expressions.
        uses: names that these read.
    """

    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]
    returns: tuple[str, ...]
    uses: frozenset[str]

    @property
    def free(self) -> frozenset[str]:
        """Names from outside."""
        own = {*self.parameters, *(name for one in self.body for name in one.targets)}
        return self.uses.union(*(one.reads for one in self.body)) - own


def without_unread(statements: Sequence[Statement], read: Iterable[str]) -> tuple[Statement, ...]:
    """The statements that `read` depends on; targets that nobody reads are "_"."""
    wanted, kept = set(read), []
    for one in reversed(statements):
        if wanted.isdisjoint(one.targets):
            continue
        targets = tuple(name if name in wanted else "_" for name in one.targets)
        wanted |= one.reads
        kept.append(replace(one, targets=targets))
    return tuple(reversed(kept))


def function_lines(function: Function, first: Sequence[str] = ()) -> Iterator[str]:
    """Its source, line by line; `first` are parameters before its own."""
    yield f"def {function.name}({', '.join((*first, *function.parameters))}):"
    for one in function.body:
        yield from (INDENT + line for line in _lines(one))
    returns = ", ".join(function.returns)
    yield f"{INDENT}return {returns or 'None'}"


def _lines(statement: Statement) -> Iterator[str]:
    for function in statement.functions:
        yield ""
        yield from function_lines(function)
        yield ""
    yield f"{', '.join(statement.targets)} = {statement.expression}"
