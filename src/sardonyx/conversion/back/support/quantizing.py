"""Rounding to a grid."""

from __future__ import annotations

from typing import Any

from sardonyx.conversion.back.support.words import xp

__all__ = ["quantize"]


def quantize(x: Any, scale: Any, zero: Any, low: int, high: int) -> Any:
    """Numbers as integers on a grid, as floats still; halves go to the even one."""
    return xp.clip(xp.round(x / scale) + zero, low, high)
