"""Operators that make tensors out of a few numbers; the usual bombs."""

from __future__ import annotations

import math

import numpy as np

from sardonyx.backends.reference.corrections.casting import cast_array, numpy_dtype
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError


@corrects("ConstantOfShape", reason="negative sizes are an error, and bytes are claimed first")
def constant_of_shape(call: Call, shape: Array) -> Array:
    sizes = [int(size) for size in shape.reshape(-1)]
    if any(size < 0 for size in sizes):
        raise RunError(f"shape {sizes} has a negative size", value=sizes)
    value = call.attr("value")
    fill = np.zeros(1, dtype=np.float32) if value is None else value.reshape(-1)
    if fill.size != 1:
        raise RunError(f"value has {fill.size} elements, not 1", value=fill.size)
    call.claim(math.prod(sizes) * fill.dtype.itemsize)
    return np.full(sizes, fill[0], dtype=fill.dtype)


@corrects("Range", reason="delta 0, NaN and infinities are errors; elements are start + i × delta")
def range_(call: Call, start: Array, limit: Array, delta: Array) -> Array:
    dtype = start.dtype
    if dtype.kind in "iu":
        first, end, step = int(start.item()), int(limit.item()), int(delta.item())
        if step == 0:
            raise RunError("delta is 0", value=0)
        count = max(-((first - end) // step), 0)
        call.claim(count * dtype.itemsize)
        # Every element lies between start and limit, so none of them wraps.
        return (first + np.arange(count, dtype=np.int64) * step).astype(dtype)
    wide = np.float64 if dtype == np.float64 else np.float32
    low, high, step_f = (wide(value.item()) for value in (start, limit, delta))
    if step_f == 0 or not all(np.isfinite(value) for value in (low, high, step_f)):
        raise RunError(f"start {low}, limit {high}, delta {step_f} make no range", value=step_f)
    steps = (float(high) - float(low)) / float(step_f)
    if steps > 2**63:
        call.claim(2**63)
    count = max(math.ceil(steps), 0)
    call.claim(count * max(dtype.itemsize, 8))
    steps_taken: Array = np.arange(count).astype(wide)
    return (low + steps_taken * step_f).astype(dtype)


@corrects("OneHot", reason="every type of index, depth and value; out of range is all off")
def one_hot(call: Call, indices: Array, depth: Array, values: Array) -> Array:
    size = int(cast_array(depth.reshape(-1), np.dtype(np.int64)).item())
    if size < 1:
        raise RunError(f"depth is {size}; one class or more is needed", value=size)
    if values.shape != (2,):
        raise RunError(f"values has shape {list(values.shape)}, not [2]", value=values.shape)
    rank = indices.ndim + 1
    axis = int(call.attr("axis", -1))
    if not -rank <= axis < rank:
        raise RunError(f"axis {axis} is outside rank {rank}", value=axis, limit=rank)
    whole = cast_array(indices, np.dtype(np.int64))
    whole = np.expand_dims(np.where(whole < 0, whole + size, whole), axis % rank)
    classes = np.arange(size).reshape([-1 if i == axis % rank else 1 for i in range(rank)])
    call.claim(indices.size * size * (1 + values.dtype.itemsize))
    return np.where(whole == classes, values[1], values[0]).astype(values.dtype)


@corrects("EyeLike", reason="dtype defaults to the input's, and k may lie outside")
def eye_like(call: Call, like: Array) -> Array:
    if like.ndim != 2:
        raise RunError(f"the input has rank {like.ndim}, not 2", value=like.ndim, limit=2)
    dtype = numpy_dtype(call.attr("dtype")) if call.has("dtype") else like.dtype
    eye = np.eye(like.shape[0], like.shape[1], int(call.attr("k", 0)), dtype=np.bool_)
    return eye.astype(dtype)
