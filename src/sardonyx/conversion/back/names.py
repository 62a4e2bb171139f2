"""Identifiers of generated Python.

Every word of a model that reaches source text comes through here: what is left of it are letters, digits and
underscores, so that no model can write code.
"""

from __future__ import annotations

import builtins
import keyword
import re

__all__ = ["Names", "snake_case"]

_OTHER = re.compile(r"[^0-9a-zA-Z]+")
_MOST = 60  # characters
_WORDS = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins)})
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(operator: str) -> str:
    """`BatchNormalization` → `batch_normalization`."""
    return _HUMP.sub("_", operator).lower()


class Names:
    """Gives every thing a name of its own."""

    def __init__(self, reserved: frozenset[str]) -> None:
        self._taken = {*_WORDS, *reserved}
        self._counts: dict[str, int] = {}

    def fresh(self, wish: str, otherwise: str = "value") -> str:
        """An identifier near to what is wished for that nothing else has."""
        base = _OTHER.sub("_", wish).strip("_")[-_MOST:].strip("_")
        if not base:
            base = otherwise
        if base[0].isdigit():
            base = f"{otherwise}_{base}"
        name = base
        while name in self._taken:
            self._counts[base] = self._counts.get(base, 1) + 1
            name = f"{base}_{self._counts[base]}"
        self._taken.add(name)
        return name
