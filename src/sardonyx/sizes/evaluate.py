"""From expressions back to numbers, and from symbols to other expressions."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.errors import ShapeError
from sardonyx.sizes.arithmetic import broadcast_of, floor_div, max_of, min_of, modulo
from sardonyx.sizes.expr import Atom, Expr, Size

__all__ = ["evaluate", "substitute", "symbols"]


def evaluate(size: Size, bindings: Mapping[str, int]) -> int:
    """The number that `size` is when its symbols have these values."""
    if isinstance(size, int):
        return size
    try:
        result = substitute(size, bindings)
    except ZeroDivisionError as error:
        values = ", ".join(
            f"{name}={bindings[name]}" for name in sorted(symbols(size) & set(bindings))
        )
        raise ShapeError(
            f"the size {size} divides by zero for {values}.", value=str(size)
        ) from error
    if isinstance(result, int):
        return result
    missing = ", ".join(sorted(symbols(result)))
    raise ShapeError(
        f"the size {size} depends on {missing}, which nothing binds.",
        value=str(size),
        hint="Give every symbol a value.",
    )


def substitute(size: Size, replacements: Mapping[str, Size]) -> Size:
    """`size` with symbols replaced by sizes; symbols without a replacement stay."""
    if isinstance(size, int):
        return size
    total: Size = 0
    for mono, coefficient in size.terms:
        term: Size = coefficient
        for atom, power in mono:
            value = _substitute_atom(atom, replacements)
            if isinstance(value, int):
                term = term * value**power
            else:
                for _ in range(power):
                    term = term * value
        total = total + term
    return total


def _substitute_atom(atom: Atom, replacements: Mapping[str, Size]) -> Size:
    if atom.op == "symbol":
        found = replacements.get(atom.name)
        return Expr(((((atom, 1),), 1),)) if found is None else found
    args = [substitute(arg, replacements) for arg in atom.args]
    if atom.op == "//":
        return floor_div(args[0], args[1])
    if atom.op == "%":
        return modulo(args[0], args[1])
    if atom.op == "max":
        return max_of(*args)
    if atom.op == "min":
        return min_of(*args)
    others = {arg for arg in args if isinstance(arg, int) and arg != 1}
    if len(others) > 1:
        raise ShapeError(
            f"{atom.text} has the values {', '.join(map(str, args))}, which do not broadcast.",
            value=args,
            hint="Dimensions that are not 1 must be equal.",
        )
    return broadcast_of(*args)


def symbols(size: Size) -> frozenset[str]:
    """The names of every symbol that `size` depends on."""
    if isinstance(size, int):
        return frozenset()
    found: set[str] = set()
    pending: list[Size] = [size]
    while pending:
        current = pending.pop()
        if isinstance(current, Expr):
            for mono, _ in current.terms:
                for atom, _ in mono:
                    if atom.op == "symbol":
                        found.add(atom.name)
                    else:
                        pending.extend(atom.args)
    return frozenset(found)
