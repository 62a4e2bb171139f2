"""Functions that go with programs over keras.ops, where a framework has its own way.

Convolutions and pools are computed with the channels last, which every backend can do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from sardonyx.conversion.back.support.control_flow import seen_by_windows
from sardonyx.conversion.back.support.traced import counted_loop, flip, loop, places

__all__ = [
    "average_pool",
    "channels_first",
    "channels_last",
    "conv",
    "conv_transpose",
    "counted_loop",
    "counter",
    "flip",
    "loop",
    "max_pool",
    "pick",
    "places",
    "scan",
    "scatter_elements",
    "scatter_nd",
    "sigmoid",
    "spread_out",
    "take",
    "top_k",
    "weights_like",
    "while_loop",
    "whole",
]


def take(x: Any, indices: Any, axis: int) -> Any:
    """Rows of an axis."""
    return ops.take(x, ops.cast(indices, "int32"), axis=axis)


def pick(x: Any, places: Any) -> Any:
    """Of every row the elements at its own places."""
    return ops.take_along_axis(x, ops.cast(places, "int32"), axis=1)


def sigmoid(x: Any) -> Any:
    return ops.sigmoid(x)


def weights_like(weights: Any, x: Any) -> Any:
    return ops.convert_to_tensor(weights, x.dtype)


def while_loop(goes_on: Any, once: Any, states: Any) -> Any:
    return ops.while_loop(goes_on, once, states)


def counter(count: Any) -> Any:
    return ops.arange(count, dtype="int")


def whole(x: Any) -> Any:
    return ops.cast(x, "int")


def scan(turn: Any, state: Any, sequence: Any) -> Any:
    return ops.scan(turn, state, sequence)


def top_k(x: Any, count: int, axis: int, largest: bool) -> Any:
    """The largest or smallest elements with their places; of equal ones the first."""
    falling = (
        -x if "float" in str(x.dtype) else ops.bitwise_not(x)
    )  # of bytes too, which have no -x
    order = ops.argsort(falling if largest else x, axis=axis)
    kept = order[(slice(None),) * axis + (slice(0, count),)]
    return ops.take_along_axis(x, kept, axis=axis), kept


def channels_last(x: Any) -> Any:
    rank = len(x.shape)
    return ops.transpose(x, (0, *range(2, rank), 1))


def channels_first(x: Any) -> Any:
    rank = len(x.shape)
    return ops.transpose(x, (0, rank - 1, *range(1, rank - 1)))


def conv(x: Any, w: Any, b: Any, strides: Any, dilations: Any, groups: int) -> Any:
    """Over windows that fit."""
    kernel = ops.transpose(w, (*range(2, len(w.shape)), 1, 0))
    y = channels_first(
        ops.conv(
            channels_last(x),
            kernel,
            strides=strides,
            padding="valid",
            data_format="channels_last",
            dilation_rate=dilations,
        )
    )
    return y if b is None else y + ops.reshape(b, (-1,) + (1,) * len(strides))


def spread_out(x: Any, axis: int, stride: int) -> Any:
    """Zeros between the elements of an axis."""
    if stride == 1:
        return x
    rank, size = len(x.shape), x.shape[axis]
    wide = ops.expand_dims(x, axis + 1)
    pads = [(0, 0)] * (rank + 1)
    pads[axis + 1] = (0, stride - 1)
    shape = [-1 if place == 0 else part for place, part in enumerate(x.shape)]
    shape[axis] = size * stride
    wide = ops.reshape(ops.pad(wide, pads), shape)
    return wide[(slice(None),) * axis + (slice(0, (size - 1) * stride + 1),)]


def conv_transpose(
    x: Any, w: Any, b: Any, stride: Any, pads: Any, extra: Any, dilation: Any, groups: int
) -> Any:
    """A convolution over an input that is spread out, with the filters turned around."""
    kernel = tuple(w.shape[2:])
    rank = len(kernel)
    parts = ops.reshape(w, (groups, w.shape[0] // groups, w.shape[1], *kernel))
    parts = ops.swapaxes(parts, 1, 2)
    for axis in range(rank):
        parts = ops.flip(parts, axis + 3)
        x = spread_out(x, axis + 2, stride[axis])
    turned = ops.reshape(parts, (groups * w.shape[1], w.shape[0] // groups, *kernel))
    around, cut = [(0, 0), (0, 0)], [slice(None), slice(None)]
    for k, d, (before, after), more in zip(kernel, dilation, pads, extra, strict=True):
        low, high = (k - 1) * d - before, (k - 1) * d - after + more
        around.append((max(low, 0), max(high, 0)))
        cut.append(slice(max(-low, 0), high if high < 0 else None))
    x = ops.pad(x[tuple(cut)], around)
    return conv(x, turned, b, (1,) * rank, dilation, groups)


def max_pool(x: Any, kernel: Any, strides: Any, dilations: Any) -> Any:
    """Over windows that fit."""
    if set(dilations) == {1} and len(kernel) < 3:
        return channels_first(
            ops.max_pool(channels_last(x), kernel, strides, "valid", "channels_last")
        )
    found = None
    for seen in seen_by_windows(x, kernel, strides, dilations):
        found = seen if found is None else ops.maximum(found, seen)
    return found


def average_pool(x: Any, kernel: Any, strides: Any, dilations: Any) -> Any:
    """Over windows that fit."""
    if set(dilations) == {1} and len(kernel) < 3:
        return channels_first(
            ops.average_pool(channels_last(x), kernel, strides, "valid", "channels_last")
        )
    seen = list(seen_by_windows(x, kernel, strides, dilations))
    return sum(seen[1:], seen[0]) / len(seen)


def scatter_elements(x: Any, indices: Any, updates: Any, axis: int, how: str) -> Any:
    """A copy of `x` with elements along an axis replaced, or combined with others."""
    grid = ops.meshgrid(*(ops.arange(size) for size in indices.shape), indexing="ij")
    index = [ops.cast(one, "int32") for one in grid]
    index[axis] = ops.cast(indices, "int32")
    return scatter_nd(x, ops.stack(index, axis=-1), updates, how)


def scatter_nd(x: Any, indices: Any, updates: Any, how: str) -> Any:
    """A copy of `x` with slices replaced, or combined with others."""
    count = indices.shape[-1]
    indices = ops.cast(indices, "int32")
    sizes = ops.convert_to_tensor(np.array(x.shape[:count], "int32"))
    indices = ops.where(indices < 0, indices + sizes, indices)
    flat = ops.reshape(indices, (-1, count))
    values = ops.reshape(updates, (-1, *x.shape[count:]))
    reduction = None if how == "none" else how
    return ops.scatter_update(x, flat, values, reduction=reduction)
