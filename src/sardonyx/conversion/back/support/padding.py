"""Padding by what is inside, and slices from the end."""

from __future__ import annotations

from typing import Any

from sardonyx.conversion.back.support.words import flip, places, take

__all__ = ["pad_axis", "slice_backwards"]


def pad_axis(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """Rows before and after: of the edge, mirrored in it, or from the other side."""
    size = x.shape[axis]
    place = places(before + size + after, x) - before
    if mode == "edge":
        place = place.clip(0, size - 1)
    elif mode == "wrap":
        place = place % size
    else:
        turn = max(2 * (size - 1), 1)
        place = place % turn
        place = (size - 1) - abs(place - (size - 1))
    return take(x, place, axis)


def slice_backwards(x: Any, axis: int, start: int, end: int, step: int) -> Any:
    """x[start:end:step] along an axis, for a negative step."""
    first, last, _ = slice(start, end if end >= 0 or end >= -x.shape[axis] else None, step).indices(
        x.shape[axis]
    )
    size = x.shape[axis]
    index = (slice(None),) * axis + (slice(size - 1 - first, size - 1 - last, -step),)
    return flip(x, axis)[index]
