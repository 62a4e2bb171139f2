"""Sizes as C that checks itself: `2*batch + seq//4` with overflow, division by zero and broadcasts found out.

sx_plus(z, sx_times(z, 2, n[0]), sx_quotient(z, n[1], 4))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from sardonyx.deploy.names import c_text
from sardonyx.sizes import Size
from sardonyx.sizes.expr import Atom

__all__ = ["MOST", "SizeWriter", "checked_size"]

MOST = (2**63 - 1) // 4  # SX_MOST of core.h


def checked_size(size: Size, name_of: Callable[[str], str]) -> str:
    """An int64_t expression; it reports to the `sx_sizing *z` around it."""
    if isinstance(size, int):
        return _number(size)
    terms = []
    for mono, coefficient in size.terms:
        factors = [_atom(atom, name_of) for atom, power in mono for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.insert(0, _number(coefficient))
        terms.append(_chain("sx_times(z, {}, {})", factors))
    return _chain("sx_plus(z, {}, {})", terms)


class SizeWriter:
    """Statements that compute sizes; equal ones are computed once."""

    def __init__(self, name_of: Callable[[str], str]) -> None:
        self.lines: list[str] = []
        self._name_of = name_of
        self._known: dict[Size, str] = {}

    def value(self, size: Size) -> str:
        """A C expression without cost: a number, a symbol, or the name of what was computed."""
        if isinstance(size, int):
            return _number(size)
        if size.lone_symbol is not None:
            return self._name_of(size.lone_symbol)
        if size not in self._known:
            name = f"s{len(self._known)}"
            self.lines.append(f"const int64_t {name} = {checked_size(size, self._name_of)};")
            self._known[size] = name
        return self._known[size]

    def assign(self, target: str, size: Size) -> None:
        self.lines.append(f"{target} = {self.value(size)};")


def _number(value: int) -> str:
    if not -MOST <= value <= MOST:
        return (
            'sx_refuse(z, "a size of the model does not fit into 64 bits", 0, 0)'  # for any input
        )
    return str(value) if abs(value) < 2**31 else f"INT64_C({value})"


def _chain(form: str, parts: Iterable[str]) -> str:
    return reduce(form.format, parts)


def _atom(atom: Atom, name_of: Callable[[str], str]) -> str:
    if atom.op == "symbol":
        return name_of(atom.name)
    args = [checked_size(arg, name_of) for arg in atom.args]
    if atom.op == "broadcast":
        wrong = c_text(f"{atom.text} has the values {{a}} and {{b}}, which do not broadcast")
        return _chain(
            f"sx_joined(z, {wrong.replace('{', '{{').replace('}', '}}')}, {{}}, {{}})", args
        )
    form = {
        "//": "sx_quotient(z, {}, {})",
        "%": "sx_rest(z, {}, {})",
        "max": "sx_most_of({}, {})",
        "min": "sx_least_of({}, {})",
    }[atom.op]
    return _chain(form, args)
