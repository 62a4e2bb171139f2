"""Identifiers of what is generated.

Every word of a model that reaches source text comes through here: what is left of it are letters, digits and
underscores, so that no model can write code.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

__all__ = ["PYTHON_WORDS", "Names", "snake_case"]

PYTHON_WORDS = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins)})
_MOST = 60  # characters
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(operator: str) -> str:
    """`BatchNormalization` → `batch_normalization`."""
    return _HUMP.sub("_", operator).lower()


class Names:
    """Gives every thing a name of its own.

    Args:
        reserved: names that nothing gets.
        others: what an underscore stands for: any run of other characters, or each of them.
    """

    def __init__(self, reserved: Iterable[str] = (), others: str = "[^0-9a-zA-Z]+") -> None:
        self._taken = set(reserved)
        self._others = re.compile(others)
        self._counts: dict[str, int] = {}

    def fresh(self, wish: str, otherwise: str = "value") -> str:
        """An identifier near to what is wished for that nothing else has."""
        kept = self._others.sub("_", wish).strip("_")
        base = kept[-_MOST:].strip("_") or otherwise
        if base[0].isdigit():
            base = f"{otherwise}_{base}"
        name = base
        while name in self._taken:
            self._counts[base] = self._counts.get(base, 1) + 1
            name = f"{base}_{self._counts[base]}"
        self._taken.add(name)
        return name
