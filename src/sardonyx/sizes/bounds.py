"""What can be proved about a size when every symbol is at least zero.

Two methods, and the better answer wins: intervals, term by term; and relaxation, which replaces
an atom by an expression that it cannot pass, so that related terms cancel:

    a - 2*(a//2)       intervals: anything;  relaxed with a//2 <= a/2: at least 0
    a - min(a, 5)      intervals: anything;  relaxed with min(a, 5) <= a: at least 0
    a - a%5            likewise
"""

from __future__ import annotations

from functools import lru_cache

from sardonyx.sizes.expr import Atom, Expr, Size, from_terms

__all__ = ["at_least", "lower_bound", "upper_bound"]

Interval = tuple[int | None, int | None]  # None: unbounded on that side
MAX_RELAXATIONS = 4


def at_least(a: Size, b: Size) -> bool:
    """Whether a >= b is certain for every binding of the symbols."""
    if isinstance(a, int) and isinstance(b, int):
        return a >= b
    low = lower_bound(a - b)
    return low is not None and low >= 0


def lower_bound(size: Size) -> int | None:
    """The largest integer that `size` is known not to be below; None when there is none."""
    return size if isinstance(size, int) else _lower(size, MAX_RELAXATIONS)


def upper_bound(size: Size) -> int | None:
    """The smallest integer that `size` is known not to exceed; None when there is none."""
    if isinstance(size, int):
        return size
    low = lower_bound(-size)
    return None if low is None else -low


@lru_cache(maxsize=4096)
def _lower(size: Expr, relaxations: int) -> int | None:
    best = _interval(size)[0]
    if relaxations:
        for relaxed, scale in _relax(size):
            low = relaxed if isinstance(relaxed, int) else _lower(relaxed, relaxations - 1)
            if low is not None:
                low = -(-low // scale)
                best = low if best is None else max(best, low)
    return best


def _relax(size: Expr) -> list[tuple[Size, int]]:
    """Expressions e with size >= e / scale, each with the first reducible atom replaced."""
    for mono, coefficient in size.terms:
        if len(mono) != 1 or mono[0][1] != 1:
            continue
        atom = mono[0][0]
        rest = from_terms({m: c for m, c in size.terms if m != mono})
        if atom.op == "//" and isinstance(atom.args[1], int):
            # (a - d + 1)/d <= a//d <= a/d
            dividend, divisor = atom.args[0], atom.args[1]
            limit = dividend - (divisor - 1) if coefficient > 0 else dividend
            return [(rest * divisor + coefficient * limit, divisor)]
        if atom.op == "%" and coefficient < 0 and at_least(atom.args[0], 0):
            return [(rest + coefficient * atom.args[0], 1)]  # a % d <= a
        if (atom.op == "max" and coefficient > 0) or (atom.op == "min" and coefficient < 0):
            return [(rest + coefficient * arg, 1) for arg in atom.args]
    return []


@lru_cache(maxsize=4096)
def _interval(size: Expr) -> Interval:
    low: int | None = 0
    high: int | None = 0
    for mono, coefficient in size.terms:
        term: Interval = (coefficient, coefficient)
        for atom, power in mono:
            for _ in range(power):
                term = _times(term, _atom_interval(atom))
        low = None if low is None or term[0] is None else low + term[0]
        high = None if high is None or term[1] is None else high + term[1]
    return low, high


def _size_interval(size: Size) -> Interval:
    return (size, size) if isinstance(size, int) else _interval(size)


def _atom_interval(atom: Atom) -> Interval:
    if atom.op == "symbol":
        return (0, None) if atom.nonnegative_symbol else (None, None)
    parts = [_size_interval(arg) for arg in atom.args]
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    if atom.op == "max":
        known = [low for low in lows if low is not None]
        return max(known, default=None), None if None in highs else max(
            h for h in highs if h is not None
        )
    if atom.op == "min":
        known = [high for high in highs if high is not None]
        return None if None in lows else min(v for v in lows if v is not None), min(
            known, default=None
        )
    if atom.op == "broadcast":
        # One of the arguments, whichever is not 1.
        low = None if None in lows else min(v for v in lows if v is not None)
        return low, None if None in highs else max(h for h in highs if h is not None)
    return _division_interval(atom.op, parts[0], parts[1])


def _division_interval(op: str, dividend: Interval, divisor: Interval) -> Interval:
    if divisor[0] is None or divisor[0] < 0:
        return None, None
    # A divisor that is never negative is at least 1 wherever the division has an answer.
    if op == "%":
        return 0, None if divisor[1] is None else max(divisor[1] - 1, 0)
    smallest = max(divisor[0], 1)
    low, high = dividend
    floor: int | None
    if low is None:
        floor = None
    elif low < 0:
        floor = low // smallest
    else:
        floor = 0 if divisor[1] is None else low // max(divisor[1], 1)
    if high is None:
        return floor, None
    if high >= 0:
        return floor, high // smallest
    return floor, -1 if divisor[1] is None else high // max(divisor[1], 1)


def _times(left: Interval, right: Interval) -> Interval:
    """The extremes are among the products of the ends; an open end is -1 or +1 times infinity."""
    low: int | None = None
    high: int | None = None
    open_low = open_high = False
    for a, a_infinite in _ends(left):
        for b, b_infinite in _ends(right):
            value = a * b
            if value and (a_infinite or b_infinite):
                open_low, open_high = open_low or value < 0, open_high or value > 0
            else:
                low = value if low is None else min(low, value)
                high = value if high is None else max(high, value)
    return None if open_low else low, None if open_high else high


def _ends(interval: Interval) -> tuple[tuple[int, bool], tuple[int, bool]]:
    low, high = interval
    return (-1, True) if low is None else (low, False), (1, True) if high is None else (high, False)
