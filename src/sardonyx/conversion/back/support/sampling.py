"""Samples of images between their elements."""

from __future__ import annotations

from typing import Any

from sardonyx.conversion.back.support.gathering import gather_nd
from sardonyx.conversion.back.support.resizing import cubic_weights
from sardonyx.conversion.back.support.words import whole, xp

__all__ = ["grid_sample", "grid_taps", "inside_of"]


def inside_of(at: Any, size: int, outside: str, align: bool) -> Any:
    """Places as the border has them: the nearest in the image, or mirrored in its edges."""
    if outside == "border":
        return xp.clip(at, 0, size - 1)
    low, span = (0.0, size - 1) if align else (-0.5, size)
    if span == 0:
        return at * 0
    away = abs(at - low) % (2 * span)
    mirrored = low + span - abs(away - span)
    return xp.where((at < low) | (at > low + span), mirrored, at)


def grid_taps(at: Any, mode: str) -> Any:
    """Elements around a place, with their weights."""
    if mode == "nearest":
        return [(xp.round(at), 1)]
    base = xp.floor(at)
    rest = at - base
    if mode == "linear":
        return [(base, 1 - rest), (base + 1, rest)]
    return [(base + tap, cubic_weights(rest - tap, -0.75)) for tap in (-1, 0, 1, 2)]


def grid_sample(x: Any, grid: Any, mode: str, outside: str, align: bool) -> Any:
    """Samples of `x` where `grid` says, from -1 to 1 over every axis, the last axis first."""
    rank = len(x.shape) - 2
    rows = xp.moveaxis(x, 1, -1)
    found: Any = [((), 1, True)]
    for axis in range(rank):
        size, to = x.shape[axis + 2], grid[..., rank - 1 - axis]
        at = (to + 1) / 2 * (size - 1) if align else ((to + 1) * size - 1) / 2
        at = xp.round(at) if mode == "nearest" else at
        if outside != "zeros":
            at = inside_of(at, size, outside, align)
        wider = []
        for place, weight in grid_taps(at, mode):
            kept = (place >= 0) & (place <= size - 1)
            if outside != "zeros":
                place = inside_of(place, size, outside, align)
            place = xp.clip(place, 0, size - 1)
            wider += [((*i, place), w * weight, k & kept) for i, w, k in found]
        found = wider
    total: Any = 0
    for index, weight, kept in found:
        picked = gather_nd(rows, whole(xp.stack(index, -1)), 1)
        if outside == "zeros":
            picked = xp.where(kept[..., None], picked, xp.zeros_like(picked))
        total = total + (picked if mode == "nearest" else picked * weight[..., None])
    return xp.moveaxis(total, -1, 1)
