"""Pad, in every mode and version."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.backends.reference.corrections.axes import normalize_axes
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_MODES = ("constant", "reflect", "edge", "wrap")


@corrects("Pad", reason="negative pads crop in every mode; axes; every type; reflects repeatedly")
def pad(
    call: Call,
    data: Array,
    pads: Array | None = None,
    value: Array | None = None,
    axes: Array | None = None,
) -> Array:
    mode = call.attr("mode", "constant")
    if mode not in _MODES:
        raise RunError(f"mode {mode!r} is unknown", value=mode, limit=list(_MODES))
    given = call.attr("pads") or call.attr("paddings") if pads is None else pads.reshape(-1)
    along = range(data.ndim) if axes is None else normalize_axes(axes.reshape(-1), data.ndim)
    widths = _widths(given, tuple(along), data.ndim)
    sizes = [
        size + before + after for size, (before, after) in zip(data.shape, widths, strict=True)
    ]
    if any(size < 0 for size in sizes):
        raise RunError(f"pads cut more than shape {list(data.shape)} has", value=list(given or ()))
    call.claim(math.prod(sizes) * data.dtype.itemsize)
    if mode == "constant":
        return _constant(data, widths, sizes, _fill(call, data, value))
    for axis, (before, after) in enumerate(widths):
        if before or after:
            # What is cut is gone before the rest repeats.
            first, last = max(-before, 0), data.shape[axis] - max(-after, 0)
            index = _source(mode, last - first, max(before, 0), sizes[axis])
            data = np.take(data, index + first, axis)
    return data


def _widths(
    given: Sequence[int] | Array | None, along: Sequence[int], rank: int
) -> list[tuple[int, int]]:
    pads = [] if given is None else [int(pad) for pad in given]
    if len(pads) != 2 * len(along):
        raise RunError(
            f"pads has {len(pads)} values for {len(along)} axes", value=pads, limit=2 * len(along)
        )
    widths = [(0, 0)] * rank
    for position, axis in enumerate(along):
        widths[axis] = (pads[position], pads[position + len(along)])
    return widths


def _fill(call: Call, data: Array, value: Array | None) -> Array:
    if value is not None and value.size:
        return value.reshape(-1)[0]
    if data.dtype.kind == "O":
        return np.array("", dtype=object)
    return np.asarray(call.attr("value", 0)).astype(data.dtype)


def _constant(
    data: Array, widths: Sequence[tuple[int, int]], sizes: Sequence[int], fill: Array
) -> Array:
    result = np.empty(sizes, dtype=data.dtype)
    result[...] = fill
    into, out_of = [], []
    for size, (before, after) in zip(data.shape, widths, strict=True):
        kept = max(size + min(before, 0) + min(after, 0), 0)
        into.append(slice(max(before, 0), max(before, 0) + kept))
        out_of.append(slice(max(-before, 0), max(-before, 0) + kept))
    result[tuple(into)] = data[tuple(out_of)]
    return result


def _source(mode: str, size: int, before: int, wanted: int) -> Array:
    """For each place of the padded axis, the place of the input that it repeats."""
    if size == 0 and wanted > 0:
        raise RunError(f"mode {mode!r} has nothing to repeat on an empty axis", value=0)
    place = np.arange(wanted) - before
    if mode == "edge":
        return np.clip(place, 0, size - 1)
    if mode == "wrap":
        return place % max(size, 1)
    period = max(2 * (size - 1), 1)
    folded = np.abs(place) % period
    return np.where(folded >= size, period - folded, folded)
