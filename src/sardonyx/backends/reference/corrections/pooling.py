"""Pools of any rank, walked offset by offset of the window."""

from __future__ import annotations

import numpy as np

from sardonyx.backends.reference.corrections.accumulation import accumulator, average
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.corrections.windows import make_windows, per_axis
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_RANK = "any rank, dilations, ceil_mode and auto_pad, without a Python loop over windows"


@corrects("MaxPool", reason=_RANK + "; Indices of the first maximum")
def max_pool(call: Call, x: Array) -> Array | tuple[Array, Array]:
    windows = make_windows(call, x.shape, call.attr("kernel_shape"))
    lowest = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
    source = windows.padded(call, x, lowest)
    best = np.full((*x.shape[:2], *windows.sizes), lowest, dtype=x.dtype)
    if not call.wants(1):
        for _, where in windows.offsets(call):
            best = np.maximum(best, source[where])
        return best
    call.claim(best.size * 8 * 3)
    # Positions in the unpadded input, -1 in the padding, so that padding is never chosen.
    positions = windows.padded(call, _linear_positions(call, x.shape), -1)
    chosen = np.full(best.shape, -1, dtype=np.int64)
    for _, where in windows.offsets(call):
        value, position = source[where], positions[where]
        better = (
            (value > best) | (np.isnan(value) & ~np.isnan(best)) if _is_float(x) else value > best
        )
        better = (better | (chosen < 0)) & (position >= 0)
        best = np.where(better, value, best)
        chosen = np.where(better, position, chosen)
    return best, chosen


def _is_float(x: Array) -> bool:
    return x.dtype.kind not in "iub"


def _linear_positions(call: Call, shape: tuple[int, ...]) -> Array:
    spatial = shape[2:]
    inside: Array = np.arange(int(np.prod(spatial)), dtype=np.int64)
    if call.attr("storage_order", 0):
        inside = inside.reshape(spatial[::-1]).T  # column major
    inside = inside.reshape(spatial)
    planes = np.arange(shape[0] * shape[1], dtype=np.int64) * inside.size
    return planes.reshape((*shape[:2], *[1] * len(spatial))) + inside


@corrects("AveragePool", reason=_RANK + "; what ceil_mode adds is never counted")
def average_pool(call: Call, x: Array) -> Array:
    windows = make_windows(call, x.shape, call.attr("kernel_shape"))
    source = windows.padded(call, accumulator(x), 0)
    counted = np.ones((1, 1, *x.shape[2:]), dtype=source.dtype)
    if call.attr("count_include_pad", 0):
        asked = list(zip(windows.begin, windows.end, strict=True))
        inside = np.pad(counted, [(0, 0), (0, 0), *asked], constant_values=1)
        grown = [
            (0, have - want) for have, want in zip(source.shape[2:], inside.shape[2:], strict=True)
        ]
        counts = np.pad(inside, [(0, 0), (0, 0), *grown])
    else:
        counts = windows.padded(call, counted, 0)
    total = np.zeros((*x.shape[:2], *windows.sizes), dtype=source.dtype)
    weight = np.zeros((1, 1, *windows.sizes), dtype=source.dtype)
    for _, where in windows.offsets(call):
        total += source[where]
        weight += counts[where]
    # A window without any input element averages nothing: 0 / 0.
    return (total / weight).astype(x.dtype, copy=False)


@corrects("LpPool", reason=_RANK)
def lp_pool(call: Call, x: Array) -> Array:
    if not call.has("kernel_shape"):
        raise RunError("kernel_shape is missing")
    order = float(call.attr("p", 2))
    windows = make_windows(call, x.shape, call.attr("kernel_shape"))
    source = windows.padded(call, np.abs(accumulator(x)), 0)
    total = np.zeros((*x.shape[:2], *windows.sizes), dtype=source.dtype)
    for _, where in windows.offsets(call):
        total += _power(source[where], order)
    return _power(total, 1 / order).astype(x.dtype, copy=False)


def _power(x: Array, order: float) -> Array:
    if order == 2:
        return np.square(x)
    if order == 0.5:
        return np.sqrt(x)
    return x if order == 1 else np.power(x, np.asarray(order, dtype=x.dtype))


@corrects("GlobalAveragePool", reason="sums small floats in float32")
def global_average_pool(call: Call, x: Array) -> Array:
    axes = tuple(range(2, x.ndim))
    return average(accumulator(x), axes).astype(x.dtype, copy=False)


@corrects("GlobalMaxPool", reason="an empty image has no maximum: an error, not a crash")
def global_max_pool(call: Call, x: Array) -> Array:
    axes = tuple(range(2, x.ndim))
    if x.size == 0 and 0 not in x.shape[:2]:
        raise RunError(f"no maximum of an empty image of shape {list(x.shape)}", value=x.shape)
    return x.max(axes, keepdims=True)


@corrects("GlobalLpPool", reason="onnx.reference has none")
def global_lp_pool(call: Call, x: Array) -> Array:
    order = float(call.attr("p", 2))
    axes = tuple(range(2, x.ndim))
    total = _power(np.abs(accumulator(x)), order).sum(axes, keepdims=True)
    return _power(total, 1 / order).astype(x.dtype, copy=False)


@corrects("MaxUnpool", reason="any rank; indices outside the output are an error")
def max_unpool(call: Call, x: Array, indices: Array, shape: Array | None = None) -> Array:
    if x.shape != indices.shape:
        raise RunError(
            f"X {list(x.shape)} and I {list(indices.shape)} differ in shape",
            value=indices.shape,
            limit=x.shape,
        )
    count = x.ndim - 2
    kernel = call.attr("kernel_shape")
    strides = per_axis(call, "strides", count, 1)
    pads = call.attr("pads") or (0,) * (2 * count)
    natural = (
        *x.shape[:2],
        *(
            (x.shape[axis + 2] - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axis + count]
            for axis in range(count)
        ),
    )
    size = int(np.prod(natural, dtype=object))
    linear = indices.astype(np.int64).reshape(-1)
    outside = (linear < 0) | (linear >= size)
    if outside.any():
        first = int(linear[outside][0])
        raise RunError(f"index {first} is outside an output of {size}", value=first, limit=size)
    call.claim(size * x.dtype.itemsize)
    flat = np.zeros(size, dtype=x.dtype)
    flat[linear] = x.reshape(-1)
    unpooled = flat.reshape(natural)
    return unpooled if shape is None else _fitted(call, unpooled, shape)


def _fitted(call: Call, x: Array, shape: Array) -> Array:
    """The corner that both shapes share; indices count in the shape that the attributes give."""
    wanted = tuple(int(side) for side in shape)
    if len(wanted) != x.ndim or any(side < 0 for side in wanted):
        raise RunError(f"output_shape {list(wanted)} does not fit rank {x.ndim}", value=wanted)
    call.claim(int(np.prod(wanted, dtype=object)) * x.dtype.itemsize)
    result = np.zeros(wanted, dtype=x.dtype)
    corner = tuple(slice(min(a, b)) for a, b in zip(wanted, x.shape, strict=True))
    result[corner] = x[corner]
    return result


@corrects("MaxRoiPool", reason="onnx.reference has none")
def max_roi_pool(call: Call, x: Array, rois: Array) -> Array:
    height, width = (int(side) for side in call.attr("pooled_shape"))
    scale = call.attr("spatial_scale", 1.0)
    result = np.zeros((len(rois), x.shape[1], height, width), dtype=x.dtype)
    for index, roi in enumerate(rois):
        call.check()
        batch = int(roi[0])
        if not 0 <= batch < x.shape[0]:
            raise RunError(f"roi {index} is of image {batch}, of {x.shape[0]}", value=batch)
        left, top, right, bottom = (_rounded(float(side) * scale) for side in roi[1:5])
        rows = _bins(top, bottom, height, x.shape[2])
        columns = _bins(left, right, width, x.shape[3])
        for row, (y0, y1) in enumerate(rows):
            for column, (x0, x1) in enumerate(columns):
                if y0 < y1 and x0 < x1:
                    result[index, :, row, column] = x[batch, :, y0:y1, x0:x1].max((1, 2))
    return result


def _rounded(coordinate: float) -> int:
    """Half away from zero; what is not a number is refused."""
    if not np.isfinite(coordinate):
        raise RunError(f"a roi has the coordinate {coordinate}", value=coordinate)
    return int(np.floor(abs(coordinate) + 0.5) * np.sign(coordinate))


def _bins(first: int, last: int, count: int, size: int) -> list[tuple[int, int]]:
    length = max(last - first + 1, 1) / count
    return [
        (
            min(max(int(np.floor(index * length)) + first, 0), size),
            min(max(int(np.ceil((index + 1) * length)) + first, 0), size),
        )
        for index in range(count)
    ]
