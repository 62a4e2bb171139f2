"""Sampling at computed places: GridSample, AffineGrid and RoiAlign, without loops over pixels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.backends.reference.corrections.accumulation import accumulator
from sardonyx.backends.reference.corrections.casting import cast_array
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError


@corrects("GridSample", reason="any rank, vectorised; NaN samples as -1, so nothing is undefined")
def grid_sample(call: Call, x: Array, grid: Array) -> Array:
    rank = x.ndim - 2
    if rank < 1 or grid.ndim != x.ndim or grid.shape[-1] != rank or grid.shape[0] != x.shape[0]:
        raise RunError(
            f"grid {list(grid.shape)} does not fit input {list(x.shape)}",
            value=grid.shape,
            limit=x.shape,
        )
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(call.attr("mode"), call.attr("mode"))
    padding = call.attr("padding_mode", "zeros")
    aligned = bool(call.attr("align_corners", 0))
    if mode not in ("linear", "nearest", "cubic") or padding not in (
        "zeros",
        "border",
        "reflection",
    ):
        raise RunError(f"mode {mode!r} with padding {padding!r} is unknown", value=mode)
    if x.dtype.kind == "O":
        raise RunError("strings cannot be interpolated")
    source = accumulator(x) if x.dtype.kind in "fcV" else x.astype(np.float64)
    places = np.where(np.isnan(grid), -1, grid).astype(np.float64)[..., ::-1]
    taps = []
    for axis, size in enumerate(x.shape[2:]):
        place = (
            (places[..., axis] + 1) / 2 * (size - 1)
            if aligned
            else ((places[..., axis] + 1) * size - 1) / 2
        )
        taps.append(_taps(place, size, mode, padding, aligned))
    total = np.zeros((*x.shape[:2], *grid.shape[1:-1]), dtype=source.dtype)
    if 0 in x.shape[2:]:
        return total.astype(x.dtype)
    batch = np.arange(x.shape[0]).reshape((-1, *[1] * rank))
    for corner in itertools.product(*taps):
        call.check()
        weight = math.prod(part[1] for part in corner)
        # Advanced indices around the channel axis move it last.
        picked = source[(batch, slice(None), *(part[0] for part in corner))]
        total += np.moveaxis(picked, -1, 1) * weight[:, None].astype(source.dtype)
    return cast_array(total, x.dtype)


def _taps(
    place: Array, size: int, mode: str, padding: str, aligned: bool
) -> list[tuple[Array, Array]]:
    """For one axis: which elements each sample takes, and with what weight."""
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    # Far beyond any image, so that no index leaves int64.
    place = np.clip(place, -1e15, 1e15)
    if mode == "nearest":
        place = np.rint(place)
    if padding == "border":
        place = np.clip(place, 0, max(size - 1, 0)) if mode != "cubic" else place
    elif padding == "reflection" and mode != "cubic":
        place = _reflected(place, low, high)
    if mode == "nearest":
        return [_tap(np.rint(place), np.ones_like(place), size, padding, low, high)]
    base = np.floor(place)
    ratio = place - base
    offsets: Sequence[int] = (0, 1) if mode == "linear" else (-1, 0, 1, 2)
    return [
        _tap(base + offset, _weight(ratio - offset, mode), size, padding, low, high)
        for offset in offsets
    ]


def _weight(distance: Array, mode: str) -> Array:
    x = np.abs(distance)
    if mode == "linear":
        return 1 - x
    a = -0.75
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    return np.where(x <= 1, near, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a)


def _tap(
    index: Array, weight: Array, size: int, padding: str, low: float, high: float
) -> tuple[Array, Array]:
    if padding == "zeros":
        weight = np.where((index >= 0) & (index < size), weight, 0)
    elif padding == "reflection":
        index = np.rint(_reflected(index, low, high))
    return np.clip(index, 0, max(size - 1, 0)).astype(np.int64), weight


def _reflected(place: Array, low: float, high: float) -> Array:
    span = high - low
    if span <= 0:
        return np.full_like(place, low)
    folded = np.mod(place - low, 2 * span)
    return low + np.where(folded > span, 2 * span - folded, folded)


@corrects("AffineGrid", reason="the size is checked and claimed before the grid is made")
def affine_grid(call: Call, theta: Array, size: Array) -> Array:
    sizes = [int(side) for side in size.reshape(-1)]
    if len(sizes) not in (4, 5) or any(side < 0 for side in sizes):
        raise RunError(f"size {sizes} is neither [N, C, H, W] nor [N, C, D, H, W]", value=sizes)
    rank = len(sizes) - 2
    if theta.shape != (sizes[0], rank, rank + 1):
        raise RunError(
            f"theta has shape {list(theta.shape)}, where {[sizes[0], rank, rank + 1]} is needed",
            value=theta.shape,
        )
    call.claim(sizes[0] * math.prod(sizes[2:]) * (2 * rank + 1) * 8)
    lines = []
    for side in sizes[2:]:
        if call.attr("align_corners", 0):
            lines.append(np.linspace(-1, 1, side) if side > 1 else np.zeros(side))
        else:
            lines.append((2 * np.arange(side) + 1) / max(side, 1) - 1)
    mesh = np.meshgrid(*lines, indexing="ij")[::-1]  # innermost axis first
    points = np.stack([*mesh, np.ones(sizes[2:])], -1).reshape(-1, rank + 1)
    grid = points @ accumulator(theta).astype(np.float64).transpose(0, 2, 1)
    return grid.reshape(sizes[0], *sizes[2:], rank).astype(theta.dtype)


@corrects("RoiAlign", reason="batch indices outside are an error; vectorised over the samples")
def roi_align(call: Call, x: Array, rois: Array, batch_indices: Array) -> Array:
    height, width = int(call.attr("output_height", 1)), int(call.attr("output_width", 1))
    half = (
        call.since >= 16
        and call.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    )
    images = batch_indices.astype(np.int64)
    if len(images) != len(rois) or ((images < 0) | (images >= len(x))).any():
        raise RunError(
            f"batch_indices {images.tolist()[:8]} do not fit {len(rois)} rois of {len(x)} images",
            limit=len(x),
        )
    if not np.isfinite(rois).all():
        raise RunError("a roi is not finite")
    result = np.zeros((len(rois), x.shape[1], height, width), dtype=x.dtype)
    # In the input's own precision: 5 × 0.8 / 2 is 2 samples in float32, and 3 in float64.
    wide = accumulator(rois)
    scale, shift = (
        wide.dtype.type(value) for value in (call.attr("spatial_scale", 1.0), 0.5 * half)
    )
    for index, roi in enumerate(wide):
        call.check()
        corners = roi * scale - shift
        y = _bin_samples(call, corners[1], corners[3], height, half)
        z = _bin_samples(call, corners[0], corners[2], width, half)
        if y.size and z.size:
            image = accumulator(x[images[index]])
            result[index] = _pool_samples(image, y, z, call.attr("mode", "avg"))
    return result


def _bin_samples(call: Call, start: Any, end: Any, bins: int, half: bool) -> Array:
    """Coordinates of the samples of each bin, [bins, samples]."""
    kind = type(start)
    length = end - start if half else max(end - start, kind(1))
    ratio = int(call.attr("sampling_ratio", 0))
    samples = ratio if ratio > 0 else max(math.ceil(length / bins), 0)
    call.claim(bins * samples * 64)
    size = length / kind(bins)
    inside = (np.arange(samples).astype(kind) + kind(0.5)) * size / kind(max(samples, 1))
    return start + np.arange(bins).astype(kind)[:, None] * size + inside[None, :]


def _pool_samples(image: Array, y: Array, x: Array, mode: str) -> Array:
    """Interpolate [C, H, W] at every pair of samples and pool each bin."""
    rows, row_weight, row_valid = _neighbours(y, image.shape[1])
    columns, column_weight, column_valid = _neighbours(x, image.shape[2])
    parts = []
    for i, j in itertools.product(range(2), range(2)):
        picked = image[:, rows[i][:, :, None, None], columns[j][None, None]]
        parts.append(picked * row_weight[i][:, :, None, None] * column_weight[j][None, None])
    valid = row_valid[:, :, None, None] & column_valid[None, None]
    if mode == "avg":
        return np.where(valid, sum(parts), 0).mean((2, 4))
    # The official case takes the largest of the four weighted neighbours, not of their sum.
    largest = np.maximum.reduce(parts)
    return np.where(valid, largest, 0).max((2, 4))


def _neighbours(place: Array, size: int) -> tuple[list[Array], list[Array], Array]:
    valid = (place >= -1) & (place <= size)
    inside = np.clip(place, 0, size - 1)
    low = np.floor(inside)
    high = np.minimum(low + 1, size - 1)
    ratio = inside - low
    return [low.astype(np.int64), high.astype(np.int64)], [1 - ratio, ratio], valid
