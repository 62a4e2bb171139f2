"""Index arithmetic as C."""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.sizes import Expr, Size, at_least
from sardonyx.sizes.expr import Atom, Monomial

__all__ = ["render_size"]

INT64_MAX = 2**63 - 1


def render_size(size: Size, name_of: Callable[[str], str]) -> str:
    """An int64_t expression; `name_of` gives a symbol its C name."""
    if isinstance(size, int):
        return _number(size)
    return " ".join(
        _signed_term(mono, coefficient, name_of, first=position == 0)
        for position, (mono, coefficient) in enumerate(size.terms)
    )


def _number(value: int) -> str:
    if not -INT64_MAX <= value <= INT64_MAX:
        raise OverflowError(f"the size {value} does not fit into 64 bits")
    return str(value) if abs(value) < 2**31 else f"INT64_C({value})"


def _signed_term(
    mono: Monomial, coefficient: int, name_of: Callable[[str], str], *, first: bool
) -> str:
    factors = [_atom(atom, name_of) for atom, power in mono for _ in range(power)]
    if abs(coefficient) != 1 or not factors:
        factors.insert(0, _number(abs(coefficient)))
    text = " * ".join(factors)
    if first:
        return text if coefficient > 0 else f"-{text}"
    return f"{'+' if coefficient > 0 else '-'} {text}"


def _atom(atom: Atom, name_of: Callable[[str], str]) -> str:
    if atom.op == "symbol":
        return name_of(atom.name)
    args = [render_size(arg, name_of) for arg in atom.args]
    if atom.op in ("//", "%"):
        return _division(atom, args)
    function = {"max": "sx_larger", "min": "sx_smaller", "broadcast": "sx_broadcast"}[atom.op]
    text = args[0]
    for arg in args[1:]:
        text = f"{function}({text}, {arg})"
    return text


def _division(atom: Atom, args: list[str]) -> str:
    dividend, divisor = args
    if at_least(atom.args[0], 0) and at_least(atom.args[1], 0):
        sign = "/" if atom.op == "//" else "%"
        return f"({_operand(atom.args[0], dividend)} {sign} {_operand(atom.args[1], divisor)})"
    function = "sx_floor_div" if atom.op == "//" else "sx_floor_mod"
    return f"{function}({dividend}, {divisor})"


def _operand(size: Size, text: str) -> str:
    simple = isinstance(size, int) or (isinstance(size, Expr) and size.lone_atom is not None)
    return text if simple else f"({text})"
