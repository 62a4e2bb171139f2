"""Index arithmetic over loop variables: flattening, dividing, and what their ranges prove.

offset = flatten((i, j), (rows, 768))            768*i + j
unflatten(768*i + j, (rows, 768), ranges)        (i, j), because j < 768
recombine(768*(q//768) + q % 768)                q
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import NamedTuple

from sardonyx.sizes import Expr, Size, at_least, product, substitute, symbol, symbols
from sardonyx.sizes.expr import Atom, Monomial, from_terms, terms_of

__all__ = [
    "Ranges",
    "coefficient",
    "divide",
    "divides_by_data",
    "flatten",
    "provably_below",
    "recombine",
    "remainder",
    "strides_of",
    "unflatten",
]

Ranges = Mapping[str, Size]  # a variable's name -> its extent: it is at least 0 and below that


def strides_of(shape: Sequence[Size]) -> tuple[Size, ...]:
    """How far apart neighbours along each axis lie in row-major order."""
    return tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))


def flatten(index: Sequence[Size], shape: Sequence[Size]) -> Size:
    """The position of an element in row-major order."""
    total: Size = 0
    for at, stride in zip(index, strides_of(shape), strict=True):
        total = total + at * stride
    return recombine(total)


def unflatten(position: Size, shape: Sequence[Size], ranges: Ranges) -> tuple[Size, ...]:
    """The index of the element at a position; the position is known to be inside."""
    if product(shape) == 0:
        return (0,) * len(shape)  # nothing is inside: no loop asks, and no stride divides
    found: list[Size] = []
    rest = position
    for axis, stride in enumerate(strides_of(shape)):
        if shape[axis] == 1:
            found.append(0)
            continue
        if stride == 1:
            found.append(rest)
            break
        found.append(divide(rest, stride, ranges))
        rest = remainder(rest, stride, ranges)
    return tuple(found) + (0,) * (len(shape) - len(found))


def coefficient(size: Size, name: str) -> tuple[Size, Size]:
    """size as (factor, rest): factor * name + rest, where it is linear in the symbol."""
    rest = substitute(size, {name: 0})
    factor = substitute(size - rest, {name: 1}) if name in symbols(size) else 0
    if size - rest != factor * symbol(name):
        return symbol(name), size  # not linear: the caller sees the name again
    return factor, rest


def divide(a: Size, b: Size, ranges: Ranges) -> Size:
    """a // b for b > 0, with the ranges' help."""
    whole, rest = _split(a, b)
    if provably_below(rest, b, ranges):
        return whole
    coarse = _coarse(rest, b, ranges)
    if coarse is not None:
        return whole + divide(coarse.units, coarse.parts, ranges)
    return whole + rest // b


def remainder(a: Size, b: Size, ranges: Ranges) -> Size:
    """a % b for b > 0, with the ranges' help."""
    _, rest = _split(a, b)
    if provably_below(rest, b, ranges):
        return rest
    coarse = _coarse(rest, b, ranges)
    if coarse is not None:
        return coarse.unit * remainder(coarse.units, coarse.parts, ranges) + coarse.fine
    return rest % b


class _Coarse(NamedTuple):
    """units * unit + fine, with 0 <= fine < unit, beside a divisor of so many parts of a unit each."""

    units: Size
    unit: Size
    fine: Size
    parts: int


def _coarse(size: Size, by: Size, ranges: Ranges) -> _Coarse | None:
    """(768*h + j) / 3072 is h / 4 where j < 768."""
    divisor = terms_of(by)
    content = gcd(*(factor for _, factor in divisor))
    for common in dict.fromkeys(gcd(factor, content) for _, factor in terms_of(size)):
        unit = from_terms({mono: factor // content * common for mono, factor in divisor})
        if common < content and unit != 1:
            units, fine = _split(size, unit)
            if units != 0 and provably_below(fine, unit, ranges):
                return _Coarse(units, unit, fine, content // common)
    return None


def provably_below(size: Size, limit: Size, ranges: Ranges) -> bool:
    """Whether 0 <= size < limit for every value of the variables."""
    low, high = _extremes(size, ranges)
    return low is not None and high is not None and at_least(low, 0) and at_least(limit, high + 1)


def _split(a: Size, b: Size) -> tuple[Size, Size]:
    """Terms that b divides exactly, divided, and the rest.

    Of several terms, as i*(past + new): those that go away together when a multiple of b is taken off.
    """
    whole: Size = 0
    rest = a
    divisor = terms_of(b)
    for mono, coefficient in terms_of(a):
        ratio = _ratio(mono, coefficient, divisor[0])
        if ratio is not None:
            less = rest - ratio * b
            if len(terms_of(less)) == len(terms_of(rest)) - len(divisor):
                whole, rest = whole + ratio, less
    return whole, rest


def _ratio(mono: Monomial, coefficient: int, by: tuple[Monomial, int]) -> Size | None:
    """term / by, when that is a term too; a constant keeps its remainder out of it."""
    by_mono, by_coefficient = by
    if by_coefficient <= 0 or coefficient % by_coefficient:
        return None
    powers = dict(mono)
    for atom, power in by_mono:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        powers[atom] = left
    kept = tuple((atom, power) for atom, power in powers.items() if power)
    return from_terms({kept: coefficient // by_coefficient})


def _extremes(size: Size, ranges: Ranges) -> tuple[Size | None, Size | None]:
    """Bounds from below and above, with every ranged variable at an end of its range."""
    if isinstance(size, int):
        return size, size
    low: Size = 0
    high: Size = 0
    for mono, coefficient in size.terms:
        least, most = _term_extremes(mono, ranges)
        if least is None or most is None:
            return None, None
        if coefficient > 0:
            low, high = low + coefficient * least, high + coefficient * most
        else:
            low, high = low + coefficient * most, high + coefficient * least
    return low, high


def _term_extremes(mono: Monomial, ranges: Ranges) -> tuple[Size | None, Size | None]:
    """A product of nonnegative atoms is smallest and largest where all of them are."""
    least: Size = 1
    most: Size = 1
    for atom, power in mono:
        low, high = _atom_extremes(atom, ranges)
        if low is None or high is None or not at_least(low, 0):
            return None, None
        for _ in range(power):
            least, most = least * low, most * high
    return least, most


def _atom_extremes(atom: Atom, ranges: Ranges) -> tuple[Size | None, Size | None]:
    itself = Expr(((((atom, 1),), 1),))
    if atom.op == "symbol":
        if atom.name in ranges:
            return 0, ranges[atom.name] - 1
        return (itself, itself) if atom.nonnegative_symbol else (None, None)
    if not _mentions(itself, ranges):
        return itself, itself
    if atom.op not in ("//", "%") or not at_least(atom.args[1], 0):
        return None, None
    if atom.op == "%":
        return 0, atom.args[1] - 1
    if not _mentions(atom.args[1], ranges):
        low, high = _extremes(atom.args[0], ranges)
        if low is None or high is None or not at_least(low, 0):
            return None, None
        return 0, high // atom.args[1]
    return None, None


def _mentions(size: Size, ranges: Ranges) -> bool:
    return not symbols(size).isdisjoint(ranges)


def divides_by_data(size: Size, name: str) -> bool:
    """Whether a // or % inside the size depends on this variable."""
    for mono, _ in terms_of(size):
        for atom, _ in mono:
            if atom.op != "symbol" and any(name in symbols(arg) for arg in atom.args):
                return True
    return False


def recombine(size: Size) -> Size:
    """b*(a//b) + a % b becomes a, for every such pair, and for those that come up by that."""
    while not isinstance(size, int):
        before = size
        remainders = {
            atom for mono, _ in size.terms for atom, power in mono if atom.op == "%" and power == 1
        }
        for atom in sorted(remainders, key=lambda one: one.order, reverse=True):
            size = _join(size, atom)
        if size == before:
            break
    return size


def _join(size: Size, atom: Atom) -> Size:
    dividend, divisor = atom.args
    twin = Atom("//", (dividend, divisor))
    with_remainder, rest = _coefficient(size, atom)
    with_quotient, rest = _coefficient(rest, twin)
    if with_quotient == 0 or with_quotient != with_remainder * divisor:
        return size
    return with_remainder * dividend + rest


def _coefficient(size: Size, atom: Atom) -> tuple[Size, Size]:
    """size as (coefficient, rest): coefficient * atom + rest."""
    taken: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for mono, number in terms_of(size):
        if (atom, 1) in mono:
            taken[tuple(factor for factor in mono if factor[0] != atom)] = number
        else:
            rest[mono] = number
    return from_terms(taken), from_terms(rest)
