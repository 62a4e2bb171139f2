"""Axes as nodes write them (negative counts from the end) to axes as numpy takes them."""

from __future__ import annotations

from collections.abc import Iterable

from sardonyx.errors import RunError

__all__ = ["normalize_axes", "normalize_axis"]


def normalize_axis(axis: int, rank: int) -> int:
    """An axis within 0..rank-1."""
    axis = int(axis)
    if not -rank <= axis < rank:
        raise RunError(f"axis {axis} is outside rank {rank}", value=axis, limit=rank)
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Axes within 0..rank-1, none of them twice."""
    given = [int(axis) for axis in axes]
    normal = tuple(normalize_axis(axis, rank) for axis in given)
    if len(set(normal)) != len(normal):
        raise RunError(f"axes {given} name one axis twice", value=given, limit=rank)
    return normal
