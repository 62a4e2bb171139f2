"""Every operator that has an entry, found by domain, name and opset version."""

from __future__ import annotations

from functools import lru_cache

from sardonyx.ops import (
    attention,
    choose,
    conv,
    elementwise,
    gather_scatter,
    generate,
    matmul,
    norm,
    pieces,
    pool,
    quant,
    reduce,
    resize,
    rnn,
    sequence,
    signals,
    strings,
    training,
    trees_ml,
    views,
)
from sardonyx.ops.entry import Operator

__all__ = ["FAMILIES", "all_operators", "find_operator", "register"]

FAMILIES = (
    elementwise,
    reduce,
    matmul,
    conv,
    pool,
    norm,
    attention,
    rnn,
    quant,
    views,
    pieces,
    gather_scatter,
    choose,
    resize,
    generate,
    sequence,
    strings,
    signals,
    training,
    trees_ml,
)


@lru_cache(maxsize=1)
def _entries() -> dict[tuple[str, str], tuple[Operator, ...]]:
    found: dict[tuple[str, str], tuple[Operator, ...]] = {}
    for family in FAMILIES:
        for operator in family.OPERATORS:
            key = (operator.domain, operator.name)
            found[key] = (*found.get(key, ()), operator)
    return found


def register(operator: Operator) -> None:
    """Add an entry for an operator of the user's own; the last one of a name counts."""
    _entries()[operator.domain, operator.name] = (operator,)
    find_operator.cache_clear()


def all_operators() -> tuple[Operator, ...]:
    """Every entry, in the order of the families."""
    return tuple(operator for entries in _entries().values() for operator in entries)


@lru_cache(maxsize=4096)
def find_operator(domain: str, name: str, version: int) -> Operator | None:
    """The entry in force at this opset version, or None."""
    for operator in _entries().get((domain, name), ()):
        if operator.since <= version and (operator.until is None or version <= operator.until):
            return operator
    return None
