"""Division, remainders, maxima and minima, simplified as far as bounds can prove."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from sardonyx.sizes.bounds import at_least, lower_bound, upper_bound
from sardonyx.sizes.expr import Atom, Expr, Monomial, Size, call, from_terms, terms_of

__all__ = [
    "broadcast_of",
    "ceil_div",
    "exact_div",
    "floor_div",
    "max_of",
    "min_of",
    "modulo",
    "product",
    "quotient",
]

MAX_DIVISION_STEPS = 64
MAX_ALTERNATIVES = 16  # arguments of one max or min that are compared pairwise


def product(sizes: Iterable[Size]) -> Size:
    """The sizes multiplied: how many elements a shape has."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


def ceil_div(a: Size, b: Size) -> Size:
    """a / b rounded up, for b > 0."""
    return (a + b - 1) // b


def exact_div(a: Size, b: Size) -> Size:
    """a / b where the caller knows that b divides a: a polynomial if that shows, else a // b."""
    exact = quotient(a, b)
    return a // b if exact is None else exact


def floor_div(a: Size, b: Size) -> Size:
    """a // b, rounded towards minus infinity as Python does."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if isinstance(b, int):
        if b == 0:
            raise ZeroDivisionError(f"{a} // 0")
        return _floor_div_by_int(a, b) if b > 0 else _floor_div_by_int(-a, -b)
    exact = quotient(a, b)
    if exact is not None:
        return exact
    if at_least(a, 0) and at_least(b, a + 1):
        return 0
    return call("//", a, b)


def _floor_div_by_int(a: Size, b: int) -> Size:
    # Whole multiples of b leave the division: (6*n + m + 5)//3 == 2*n + 1 + (m + 2)//3.
    whole = from_terms({mono: c // b for mono, c in terms_of(a)})
    rest = from_terms({mono: c % b for mono, c in terms_of(a)})
    if isinstance(rest, int):
        return whole  # 0 <= rest < b
    # A factor that the divisor shares with every symbol cancels: (2*n + 1)//4 == n//2.
    shared = gcd(b, *(c for mono, c in rest.terms if mono))
    if shared > 1:
        rest, b = from_terms({mono: c // shared for mono, c in rest.terms}), b // shared
        if b == 1:
            return whole + rest
        if isinstance(rest, int):
            return whole + rest // b
    # (n//2 + 1)//3 == (n + 2)//6
    inner = from_terms({mono: c for mono, c in rest.terms if mono})
    atom = inner.lone_atom if isinstance(inner, Expr) else None
    if atom is not None and atom.op == "//" and isinstance(atom.args[1], int):
        offset = rest - inner
        return whole + floor_div(atom.args[0] + offset * atom.args[1], atom.args[1] * b)
    low, high = lower_bound(rest), upper_bound(rest)
    if low is not None and high is not None and low // b == high // b:
        return whole + low // b
    return whole + call("//", rest, b)


def modulo(a: Size, b: Size) -> Size:
    """a % b with the sign of b, as Python does."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if isinstance(b, int):
        if b == 0:
            raise ZeroDivisionError(f"{a} % 0")
        return _modulo_int(a, b) if b > 0 else -_modulo_int(-a, -b)
    if quotient(a, b) is not None:
        return 0
    if at_least(a, 0) and at_least(b, a + 1):
        return a
    return call("%", a, b)


def _modulo_int(a: Size, b: int) -> Size:
    rest = from_terms({mono: c % b for mono, c in terms_of(a)})
    if isinstance(rest, int):
        return rest
    shared = gcd(b, *(c for _, c in rest.terms))
    if shared > 1:
        return shared * _modulo_int(
            from_terms({m: c // shared for m, c in rest.terms}), b // shared
        )
    low, high = lower_bound(rest), upper_bound(rest)
    if low is not None and high is not None and low // b == high // b:
        return rest - low // b * b
    return call("%", rest, b)


def quotient(a: Size, b: Size) -> Size | None:
    """The polynomial q with q * b == a, or None when there is none.

    Where b has the value 0 the question has no answer, so b is taken not to be 0.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    if isinstance(b, int):
        if b == 0 or any(c % b for _, c in terms_of(a)):
            return None
        return from_terms({mono: c // b for mono, c in terms_of(a)})
    remainder, result = a, 0 if isinstance(a, int) else a - a
    atoms = dict.fromkeys(atom for size in (a, b) for mono, _ in terms_of(size) for atom, _ in mono)
    lead_mono, lead_coefficient = _leading_term(b, atoms)
    for _ in range(MAX_DIVISION_STEPS):
        if remainder == 0:
            return result
        mono, coefficient = _leading_term(remainder, atoms)
        ratio = _divide_monomial(mono, lead_mono)
        if ratio is None or coefficient % lead_coefficient:
            return None
        step = from_terms({ratio: coefficient // lead_coefficient})
        result, remainder = result + step, remainder - step * b
    return None


def _leading_term(size: Size, atoms: Iterable[Atom]) -> tuple[Monomial, int]:
    """The term of highest degree; among those, of the highest power of the first atom, and so on.

    Long division needs an order that products keep: the leading term of a product is the product of the
    leading terms.
    """

    def rank(term: tuple[Monomial, int]) -> tuple[int, ...]:
        powers = dict(term[0])
        return (sum(powers.values()), *(powers.get(atom, 0) for atom in atoms))

    return max(terms_of(size), key=rank)


def _divide_monomial(mono: Monomial, by: Monomial) -> Monomial | None:
    powers = dict(mono)
    for atom, power in by:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        powers[atom] = left
    return tuple((atom, power) for atom, power in powers.items() if power)


def max_of(*sizes: Size) -> Size:
    """The largest; arguments that another one always reaches are dropped."""
    return _extreme("max", sizes)


def min_of(*sizes: Size) -> Size:
    """The smallest; arguments that are never below another one are dropped."""
    return _extreme("min", sizes)


def _extreme(op: str, sizes: tuple[Size, ...]) -> Size:
    pick = max if op == "max" else min
    if all(isinstance(size, int) for size in sizes):
        return pick(size for size in sizes if isinstance(size, int))
    flat = _flatten(op, sizes)
    kept: list[Size] = []
    for size in flat:
        if len(flat) > MAX_ALTERNATIVES:
            kept.append(size)
        elif not any(_dominates(op, other, size) for other in kept):
            kept = [other for other in kept if not _dominates(op, size, other)] + [size]
    return kept[0] if len(kept) == 1 else call(op, *sorted(kept, key=_argument_order))


def _flatten(op: str, sizes: Iterable[Size]) -> list[Size]:
    """Arguments of nested calls of the same op, without duplicates, in a fixed order."""
    found: dict[Size, None] = {}
    for size in sizes:
        atom = size.lone_atom if isinstance(size, Expr) else None
        for arg in atom.args if atom is not None and atom.op == op else (size,):
            found[arg] = None
    return sorted(found, key=_argument_order)


def _dominates(op: str, a: Size, b: Size) -> bool:
    return at_least(a, b) if op == "max" else at_least(b, a)


def _argument_order(size: Size) -> tuple[bool, str]:
    return isinstance(size, int), str(size)


def broadcast_of(*sizes: Size) -> Size:
    """The size that dimensions broadcast to: all that are not 1 agree on it.

    Two different symbols may both be legal, one of them being 1 when the model runs, and then only
    the atom `broadcast(a, b)` is true: neither of them alone, nor their maximum (0 and 1 give 0).
    """
    flat = [size for size in _flatten("broadcast", sizes) if size != 1]
    if not flat:
        return 1
    if len(flat) > 1:
        # Whoever cannot be 1 is the answer, for the others are then 1 or equal to it.
        sure = [size for size in flat if size == 0 or at_least(size, 2)]
        if sure:
            return sure[-1]
        flat = [size for size in flat if not any(_follows(size, other) for other in flat)]
    return flat[0] if len(flat) == 1 else call("broadcast", *flat)


def _follows(size: Size, other: Size) -> bool:
    """Whether size is min(other, positive…), which other absorbs: it equals other or is 1."""
    atom = size.lone_atom if isinstance(size, Expr) else None
    if atom is None or atom.op != "min" or other not in atom.args:
        return False
    return all(arg == other or at_least(arg, 1) for arg in atom.args)
