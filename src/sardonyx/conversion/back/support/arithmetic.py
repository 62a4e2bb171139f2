"""Integer division as C has it."""

from __future__ import annotations

from typing import Any

__all__ = ["divide_integers", "truncated_remainder"]


def divide_integers(a: Any, b: Any) -> Any:
    """a / b, cut off towards zero."""
    quotient = a // b
    rest = a - quotient * b
    return quotient + ((rest != 0) & ((rest < 0) != (a < 0)))


def truncated_remainder(a: Any, b: Any) -> Any:
    """The remainder that has the sign of `a`."""
    rest = abs(a) % abs(b)
    return rest * ((a > 0) * 1 - (a < 0) * 1)
