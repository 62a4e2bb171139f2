"""Operators that move, cut, repeat and rename elements without computing on them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.backends.reference.corrections.axes import normalize_axes, normalize_axis
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_AXES_BEFORE_13 = "before opset 13 axes are an attribute"


@corrects("Reshape", reason="two -1, other negatives, 0 past the rank and misfits are errors")
def reshape(call: Call, data: Array, shape: Array | None = None) -> Array:
    wanted = [int(size) for size in (call.attr("shape", ()) if shape is None else shape)]
    if not call.attr("allowzero", 0):
        if any(size == 0 and axis >= data.ndim for axis, size in enumerate(wanted)):
            raise RunError(
                f"shape {wanted} copies an axis that input {list(data.shape)} does not have",
                value=wanted,
                limit=data.ndim,
            )
        wanted = [data.shape[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    elif 0 in wanted and -1 in wanted:
        raise RunError(f"shape {wanted} has both 0 and -1 with allowzero", value=wanted)
    if wanted.count(-1) > 1 or any(size < -1 for size in wanted):
        raise RunError(
            f"shape {wanted} must have at most one -1 and no other negative", value=wanted
        )
    known = math.prod(size for size in wanted if size != -1)
    if -1 in wanted:
        # With another size of 0 every number would do, so none is inferred.
        fits = known != 0 and data.size % known == 0
        wanted = [data.size // known if fits and s == -1 else s for s in wanted]
    else:
        fits = known == data.size
    if not fits:
        raise RunError(
            f"{data.size} elements of shape {list(data.shape)} do not fit shape {wanted}",
            value=wanted,
            limit=data.size,
        )
    return data.reshape(wanted)


@corrects("Shape", since=15, reason="an end before the first axis gives nothing")
def shape_of(call: Call, data: Array) -> Array:
    bounds = [int(call.attr("start", 0)), int(call.attr("end", data.ndim))]
    first, last = (min(max(b + data.ndim if b < 0 else b, 0), data.ndim) for b in bounds)
    return np.array(data.shape[first:last], dtype=np.int64)


@corrects("Flatten", reason="an empty tensor keeps its product of sizes")
def flatten(call: Call, data: Array) -> Array:
    axis = int(call.attr("axis", 1))
    if not -data.ndim <= axis <= data.ndim:
        raise RunError(f"axis {axis} is outside rank {data.ndim}", value=axis, limit=data.ndim)
    axis = axis + data.ndim if axis < 0 else axis
    return data.reshape(math.prod(data.shape[:axis]), math.prod(data.shape[axis:]))


@corrects("Squeeze", reason=_AXES_BEFORE_13 + "; an axis that is not 1 is an error")
def squeeze(call: Call, data: Array, axes: Array | None = None) -> Array:
    given = call.attr("axes") if axes is None else axes.reshape(-1)
    if given is None:
        return data.squeeze()
    normal = normalize_axes(given, data.ndim)
    if any(data.shape[axis] != 1 for axis in normal):
        raise RunError(
            f"axes {list(normal)} of shape {list(data.shape)} are not all 1", value=list(normal)
        )
    return data.squeeze(normal)


@corrects("Unsqueeze", reason=_AXES_BEFORE_13 + "; an axis named twice is an error")
def unsqueeze(call: Call, data: Array, axes: Array | None = None) -> Array:
    given = call.attr("axes", ()) if axes is None else axes.reshape(-1)
    normal = normalize_axes(given, data.ndim + len(given))
    return np.expand_dims(data, normal)


@corrects("Transpose", reason="a perm that is no permutation is an error")
def transpose(call: Call, data: Array) -> Array:
    perm = call.attr("perm")
    if perm is None:
        return data.transpose()
    if sorted(perm) != list(range(data.ndim)):
        raise RunError(
            f"perm {list(perm)} is no permutation of {data.ndim} axes",
            value=list(perm),
            limit=data.ndim,
        )
    return data.transpose(perm)


@corrects("Concat", reason="axis is checked; opset 1 defaults to axis 1")
def concat(call: Call, *inputs: Array) -> Array:
    axis = normalize_axis(call.attr("axis", 1), inputs[0].ndim)
    first = inputs[0].shape
    for other in inputs[1:]:
        same = other.ndim == len(first) and all(
            a == b for i, (a, b) in enumerate(zip(first, other.shape, strict=True)) if i != axis
        )
        if not same:
            raise RunError(
                f"shapes {list(first)} and {list(other.shape)} differ off axis {axis}",
                value=other.shape,
                limit=first,
            )
    return np.concatenate(inputs, axis)


@corrects("Split", reason="sizes must not be negative and must add up; num_outputs may not divide")
def split(call: Call, data: Array, sizes: Array | None = None) -> tuple[Array, ...]:
    axis = normalize_axis(call.attr("axis", 0), data.ndim)
    length = data.shape[axis]
    given = call.attr("split") if sizes is None else sizes
    if given is not None:
        parts = [int(size) for size in given]
    else:
        count = int(call.attr("num_outputs", call.outputs))
        if count != call.outputs or (call.since < 18 and length % count):
            raise RunError(f"{length} does not split into {count} parts", value=count, limit=length)
        chunk = -(-length // count)
        parts = [max(min(chunk, length - i * chunk), 0) for i in range(count)]
    if any(size < 0 for size in parts) or sum(parts) != length or len(parts) != call.outputs:
        raise RunError(
            f"split {parts} does not cut an axis of {length} into {call.outputs} outputs",
            value=parts,
            limit=length,
        )
    return tuple(np.split(data, np.cumsum(parts)[:-1], axis))


@corrects(
    "Slice", reason="step 0 and repeated axes are errors; bounds of INT64_MIN and MAX are right"
)
def slice_(
    call: Call,
    data: Array,
    starts: Array | None = None,
    ends: Array | None = None,
    axes: Array | None = None,
    steps: Array | None = None,
) -> Array:
    first = _integers(call.attr("starts", ()) if starts is None else starts)
    last = _integers(call.attr("ends", ()) if ends is None else ends)
    where = call.attr("axes") if axes is None else axes
    along = list(range(len(first))) if where is None else _integers(where)
    stride = [1] * len(first) if steps is None else _integers(steps)
    if not len(first) == len(last) == len(along) == len(stride):
        raise RunError(
            f"{len(first)} starts, {len(last)} ends, {len(along)} axes and {len(stride)} steps"
        )
    cuts = [slice(None)] * data.ndim
    normal = normalize_axes(along, data.ndim)
    for axis, start, end, step in zip(normal, first, last, stride, strict=True):
        if step == 0:
            raise RunError(f"step 0 on axis {axis}", value=0)
        cuts[axis] = _clamped(start, end, step, data.shape[axis])
    return data[tuple(cuts)]


def _integers(values: Sequence[int] | Array) -> list[int]:
    return [int(value) for value in np.asarray(values).reshape(-1)]


def _clamped(start: int, end: int, step: int, size: int) -> slice:
    """Bounds of the standard to those of Python, where -1 as an end would mean the last."""
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    if size == 0:
        return slice(0, 0)
    # Unlike Python's, a start before the first element is moved onto it.
    start = min(max(start, 0), size - 1)
    end = min(max(end, -1), size - 1)
    return slice(start, None if end < 0 else end, step)


@corrects("Tile", reason="repeats are checked; opset 1 takes tiles and axis")
def tile(call: Call, data: Array, repeats: Array, axis: Array | None = None) -> Array:
    if call.since < 6:
        counts = [1] * data.ndim
        counts[normalize_axis(int(np.asarray(axis).item()), data.ndim)] = int(repeats.item())
    else:
        counts = _integers(repeats)
    if len(counts) != data.ndim or any(count < 0 for count in counts):
        raise RunError(
            f"repeats {counts} do not fit rank {data.ndim}", value=counts, limit=data.ndim
        )
    return np.tile(data, counts)


@corrects("Expand", reason="sizes must not be negative; a wrong shape is named")
def expand(call: Call, data: Array, shape: Array) -> Array:
    wanted = tuple(_integers(shape))
    try:
        full = np.broadcast_shapes(data.shape, wanted)
    except ValueError as error:
        raise RunError(
            f"shape {list(data.shape)} does not broadcast with {list(wanted)}",
            value=list(wanted),
            limit=data.shape,
        ) from error
    return np.array(np.broadcast_to(data, full), order="C")
