"""What holds of sizes wherever a tensor has elements: then no dimension of it is 0, and symbols are not as small as they may be.

    shape (n, 3, (s + 7)//8)       elements only where n >= 1 and s >= 1
    (s + 7)//8  and  max(s - 1, 0)//8 + 1      the same size, but for s = 0

Exporters write floor(s / 8) as the division of integers, which cuts towards zero: their sizes are a model's own but for images
without pixels.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.errors import ShapeError
from sardonyx.sizes.bounds import upper_bound
from sardonyx.sizes.evaluate import substitute, symbols
from sardonyx.sizes.expr import Size, symbol

__all__ = ["equal_where_elements"]

_MOST = 64  # of a symbol's smallest values that are tried


def equal_where_elements(a: Size, b: Size, shape: Sequence[Size]) -> bool:
    """Whether two sizes are the same for all values of the symbols with which a tensor of this shape has elements."""
    if a == b:
        return True
    named = symbols(a) | symbols(b)
    least = {name: max(_least(size, name) for size in shape) for name in named}
    raised = {name: symbol(name) + number for name, number in least.items() if number}
    try:
        return bool(raised) and substitute(a, raised) == substitute(b, raised)
    except (ZeroDivisionError, ShapeError):
        return False


def _least(size: Size, name: str) -> int:
    """So many of the smallest values of a symbol make a size 0, whatever the others are."""
    found = 0
    while name in symbols(size) and found < _MOST and _is_nothing(size, name, found):
        found += 1
    return found


def _is_nothing(size: Size, name: str, value: int) -> bool:
    try:
        high = upper_bound(substitute(size, {name: value}))
    except (ZeroDivisionError, ShapeError):
        return False
    return high is not None and high <= 0
