"""The expression itself: an integer polynomial over atoms, in one canonical form.

    3*batch*seq + seq//4 + 1
    ───┬───────   ──┬───   ┬
     term          term   term        a term is (monomial, coefficient)
       batch*seq is a monomial        ((batch, 1), (seq, 1)): atoms with powers, sorted
                    seq//4 is an atom, as symbols, %, max, min and broadcast are

Two expressions are equal exactly when their canonical forms are; an atom's text is its identity.
Work is bounded: an expression that outgrows the limits below becomes one opaque symbol, named by
a digest of what it stood for, so that the same sum always gets the same name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, Union

__all__ = ["Atom", "Expr", "Monomial", "Size", "call", "from_terms", "opaque", "symbol", "terms_of"]

Size: TypeAlias = Union[int, "Expr"]
Monomial: TypeAlias = "tuple[tuple[Atom, int], ...]"

MAX_TERMS = 128
MAX_PRODUCTS = 2048  # terms multiplied with terms, before like ones are gathered
MAX_DEGREE = 32
MAX_DEPTH = 32  # atoms inside atoms
MAX_TEXT = 4096  # characters of one atom
MAX_TOTAL_TEXT = 8 * MAX_TEXT  # characters of all atoms of one expression
MAX_COEFFICIENT = 1 << 256

PLAIN_NAME = re.compile(r"[^\W\d][\w.]*")
HYPHENATED_NAME = re.compile(r"[^\W\d][\w.]*(?:-[^\W\d][\w.]*)*")
OPAQUE_PREFIX = "#"


class Atom:
    """A symbol, or an operation that a polynomial cannot express: // % max min broadcast."""

    __slots__ = ("_hash", "args", "depth", "name", "op", "order", "text")

    depth: int
    order: tuple[bool, str]  # symbols come before what is built from them

    def __init__(self, op: str, args: tuple[Size, ...], name: str = "") -> None:
        self.op = op
        self.args = args
        self.name = name
        self.depth = 1 + max((arg.depth for arg in args if isinstance(arg, Expr)), default=0)
        self.text = self._text()
        self.order = (op != "symbol", self.text)
        self._hash = hash(self.text)

    def _text(self) -> str:
        if self.op == "symbol":
            return self.name if PLAIN_NAME.fullmatch(self.name) else _quoted(self.name)
        if self.op in ("//", "%"):
            left, right = (_operand(arg) for arg in self.args)
            return f"{left}//{right}" if self.op == "//" else f"{left} % {right}"
        return f"{self.op}({', '.join(map(str, self.args))})"

    @property
    def nonnegative_symbol(self) -> bool:
        """A dimension; opaque symbols stand for arbitrary integers."""
        return self.op == "symbol" and not self.name.startswith(OPAQUE_PREFIX)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self.text == other.text)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self.text


class Expr:
    """A size that depends on symbols. Immutable, hashable, canonical; see the module's picture."""

    __slots__ = ("_hash", "_text", "depth", "terms")

    depth: int

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self.depth = max((atom.depth for mono, _ in terms for atom, _ in mono), default=0)
        self._hash = hash(terms)
        self._text: str | None = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Expr) and self._hash == other._hash and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        raise TypeError(f"the size {self} is symbolic and has no truth value; compare it")

    def __str__(self) -> str:
        if self._text is None:
            lone = self.lone_symbol
            bare = lone is not None and HYPHENATED_NAME.fullmatch(lone)
            self._text = lone if lone is not None and bare else _render(self.terms)
        return self._text

    def __repr__(self) -> str:
        return f"Expr({self})"

    @property
    def lone_symbol(self) -> str | None:
        """The symbol's name, when the expression is one symbol and nothing else."""
        atom = self.lone_atom
        return atom.name if atom is not None and atom.op == "symbol" else None

    @property
    def lone_atom(self) -> Atom | None:
        """The atom, when the expression is one atom with coefficient and power 1."""
        if len(self.terms) == 1:
            mono, coefficient = self.terms[0]
            if coefficient == 1 and len(mono) == 1 and mono[0][1] == 1:
                return mono[0][0]
        return None

    def __add__(self, other: Size) -> Size:
        if not isinstance(other, (int, Expr)):
            return NotImplemented
        gathered = dict(self.terms)
        for mono, coefficient in terms_of(other):
            gathered[mono] = gathered.get(mono, 0) + coefficient
        return from_terms(gathered)

    def __sub__(self, other: Size) -> Size:
        if not isinstance(other, (int, Expr)):
            return NotImplemented
        return self + -other

    def __rsub__(self, other: Size) -> Size:
        return -self + other

    def __neg__(self) -> Size:
        return Expr(tuple((mono, -coefficient) for mono, coefficient in self.terms))

    def __mul__(self, other: Size) -> Size:
        if isinstance(other, int):
            return from_terms({mono: c * other for mono, c in self.terms})
        if not isinstance(other, Expr):
            return NotImplemented
        if len(self.terms) * len(other.terms) > MAX_PRODUCTS:
            return opaque("*", *sorted((str(self), str(other))))
        gathered: dict[Monomial, int] = {}
        for mono, coefficient in self.terms:
            for other_mono, other_coefficient in other.terms:
                joined = _multiply(mono, other_mono)
                gathered[joined] = gathered.get(joined, 0) + coefficient * other_coefficient
        return from_terms(gathered)

    __radd__ = __add__
    __rmul__ = __mul__

    # Division lives above this module: it needs bounds, which need expressions.
    def __floordiv__(self, other: Size) -> Size:
        from sardonyx.sizes.arithmetic import floor_div

        return floor_div(self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        from sardonyx.sizes.arithmetic import floor_div

        return floor_div(other, self)

    def __mod__(self, other: Size) -> Size:
        from sardonyx.sizes.arithmetic import modulo

        return modulo(self, other)

    def __rmod__(self, other: Size) -> Size:
        from sardonyx.sizes.arithmetic import modulo

        return modulo(other, self)

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Expr:
        return self


def symbol(name: str) -> Expr:
    """A named dimension. Two symbols of one name are the same size."""
    return Expr(((((Atom("symbol", (), name), 1),), 1),))


def call(op: str, *args: Size) -> Size:
    """The expression that is the single atom `op(args)`; opaque when it would be too large."""
    if any(isinstance(arg, Expr) and arg.depth >= MAX_DEPTH for arg in args):
        return opaque(op, *map(str, args))
    atom = Atom(op, args)
    if len(atom.text) > MAX_TEXT:
        return opaque(op, *map(str, args))
    return Expr(((((atom, 1),), 1),))


def opaque(op: str, *texts: str) -> Expr:
    """One symbol for an expression that outgrew the limits; the same expression, the same symbol."""
    digest = hashlib.blake2s("\0".join((op, *texts)).encode(), digest_size=8).hexdigest()
    return symbol(OPAQUE_PREFIX + digest)


def terms_of(size: Size) -> tuple[tuple[Monomial, int], ...]:
    """An int as a polynomial is its constant term."""
    if isinstance(size, Expr):
        return size.terms
    return (((), int(size)),) if size else ()


def from_terms(gathered: Mapping[Monomial, int]) -> Size:
    """Put terms into canonical order; a constant becomes an int."""
    kept = [(mono, c) for mono, c in gathered.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    kept.sort(key=_term_order)
    return opaque("+", _render(kept)) if _too_large(kept) else Expr(tuple(kept))


def _too_large(terms: list[tuple[Monomial, int]]) -> bool:
    if len(terms) > MAX_TERMS:
        return True
    characters = 0
    for mono, coefficient in terms:
        degree = 0
        for atom, power in mono:
            degree += power
            characters += len(atom.text)
        if degree > MAX_DEGREE or not -MAX_COEFFICIENT <= coefficient <= MAX_COEFFICIENT:
            return True
    return characters > MAX_TOTAL_TEXT


def _multiply(left: Monomial, right: Monomial) -> Monomial:
    if not left:
        return right
    if not right:
        return left
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda factor: factor[0].order))


def _term_order(term: tuple[Monomial, int]) -> tuple[int, tuple[tuple[tuple[bool, str], int], ...]]:
    mono, _ = term
    return -sum(power for _, power in mono), tuple((atom.order, power) for atom, power in mono)


def _render(terms: Iterable[tuple[Monomial, int]]) -> str:
    text = ""
    for mono, coefficient in terms:
        if not text:
            text = _render_term(mono, coefficient)
        else:
            text += f" {'+' if coefficient > 0 else '-'} {_render_term(mono, abs(coefficient))}"
    return text


def _render_term(mono: Monomial, coefficient: int) -> str:
    if coefficient == -1 and mono:
        # -(a//2), for -a//2 would be (-a)//2
        return "-" + "*".join(_render_factors(mono, lone=False))
    lone = coefficient == 1 and len(mono) == 1 and mono[0][1] == 1
    factors = [] if mono and coefficient == 1 else [str(coefficient)]
    return "*".join([*factors, *_render_factors(mono, lone)])


def _render_factors(mono: Monomial, lone: bool) -> Iterable[str]:
    for atom, power in mono:
        base = f"({atom.text})" if atom.op in ("//", "%") and not lone else atom.text
        yield base if power == 1 else f"{base}**{power}"


def _operand(size: Size) -> str:
    if isinstance(size, Expr):
        atom = size.lone_atom
        if atom is None or atom.op in ("//", "%"):
            return f"({_render(size.terms)})"
        return atom.text
    return str(size) if size >= 0 else f"({size})"


def _quoted(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
