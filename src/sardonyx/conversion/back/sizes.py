"""Sizes as Python expressions: `2 * batch + (length + 3) // 4`."""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.sizes import Expr, Size
from sardonyx.sizes.expr import Atom, Monomial

__all__ = ["size_text"]


def size_text(size: Size, name_of: Callable[[str], str]) -> str:
    """An expression; `name_of` gives a symbol its name."""
    if isinstance(size, int):
        return str(size)
    parts = [_term(mono, abs(coefficient), name_of) for mono, coefficient in size.terms]
    text = parts[0] if size.terms[0][1] > 0 else f"-{parts[0]}"
    for part, (_, coefficient) in zip(parts[1:], size.terms[1:], strict=True):
        text += f" {'+' if coefficient > 0 else '-'} {part}"
    return text


def _term(mono: Monomial, coefficient: int, name_of: Callable[[str], str]) -> str:
    factors = [_atom(atom, name_of) for atom, power in mono for _ in range(power)]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    # a // b * c is (a // b) * c, but c * a // b is not c * (a // b)
    return (
        " * ".join(f"({one})" if "//" in one or "%" in one else one for one in factors)
        if (len(factors) > 1)
        else factors[0]
    )


def _atom(atom: Atom, name_of: Callable[[str], str]) -> str:
    if atom.op == "symbol":
        return name_of(atom.name)
    args = [size_text(arg, name_of) for arg in atom.args]
    if atom.op in ("//", "%"):
        left, right = (_operand(arg, text) for arg, text in zip(atom.args, args, strict=True))
        return f"{left} {atom.op} {right}"
    if atom.op in ("max", "min"):
        return f"{atom.op}({', '.join(args)})"
    text = args[0]
    for arg in args[1:]:
        text = f"({arg} if {text} == 1 else {text})"  # sizes that broadcast
    return text


def _operand(size: Size, text: str) -> str:
    lone = isinstance(size, Expr) and size.lone_symbol is not None
    plain = lone or (isinstance(size, int) and size >= 0)
    return text if plain else f"({text})"
