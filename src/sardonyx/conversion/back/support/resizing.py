"""Resizing of one axis. Places are arrays of numpy or tensors of torch: whatever has what sizes are computed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sardonyx.conversion.back.support.words import places, take, weights_like

__all__ = ["cubic_weights", "linear_weights", "resize_nearest", "resize_weighted", "sampled_at"]


def sampled_at(x: Any, size: int, output: int, scale: float, width: float, how: str) -> Any:
    """Where in the input each place of the output samples."""
    place = places(output, x)
    if how == "asymmetric":
        return place / scale
    if how == "align_corners":
        return place * (size - 1) / (width - 1) if width != 1 else place * 0
    if how == "pytorch_half_pixel" and output <= 1:
        return place * 0
    shift = size * 0.5 * (1 - output / width) if how == "half_pixel_symmetric" else 0.0
    return shift + (place + 0.5) / scale - 0.5


def resize_nearest(x: Any, axis: int, size: int, where: Any, rounding: str) -> Any:
    """The nearest rows."""
    if rounding == "floor":
        place = where // 1
    elif rounding == "ceil":
        place = -(-where // 1)
    elif rounding == "round_prefer_ceil":
        place = (where + 0.5) // 1
    else:
        place = -((0.5 - where) // 1)
    return take(x, place.clip(0, size - 1), axis)


def linear_weights(distance: Any) -> Any:
    """Of neighbours, by their distance."""
    return (1 - abs(distance)).clip(0, 1)


def cubic_weights(distance: Any, a: float) -> Any:
    """Of four neighbours, by Keys' polynomial."""
    d = abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return near * (d <= 1) + far * ((d > 1) & (d < 2))


def resize_weighted(
    x: Any,
    axis: int,
    size: int,
    where: Any,
    weights: Callable[[Any], Any],
    reach: int,
    shrink: float,
    exclude_outside: bool,
) -> Any:
    """Sums of neighbouring rows."""
    base = -(-where // 1) - 1
    first = int(-reach / shrink // 1) + 1
    taps = list(range(first, 2 - first))
    found = [weights((tap - (where - base)) * shrink) for tap in taps]
    if exclude_outside:
        inside = [(base + tap >= 0) & (base + tap < size) for tap in taps]
        found = [one * keep for one, keep in zip(found, inside, strict=True)]
    if exclude_outside or shrink != 1.0:
        total = sum(found)
        found = [one / total for one in found]
    after = (None,) * (len(x.shape) - 1 - axis)
    result = 0
    for tap, weight in zip(taps, found, strict=True):
        line = weights_like(weight, x)[(slice(None), *after)]
        result = result + take(x, (base + tap).clip(0, size - 1), axis) * line
    return result
