"""Reductions over axes, the softmax family, and running sums."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sardonyx.backends.reference.corrections.accumulation import accumulator, average
from sardonyx.backends.reference.corrections.axes import normalize_axes, normalize_axis
from sardonyx.backends.reference.corrections.casting import cast_array
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

Axes = tuple[int, ...]


def _sum(x: Array, axes: Axes) -> Array:
    return np.sum(x, axes, keepdims=True, dtype=x.dtype)


def _mean(x: Array, axes: Axes) -> Array:
    count = math.prod(x.shape[axis] for axis in axes)
    if x.dtype.kind not in "iu":
        return average(x, axes)
    total = np.sum(x, axes, keepdims=True, dtype=np.uint64 if x.dtype.kind == "u" else np.int64)
    if count == 0 and total.size:
        raise RunError("the mean of no integers")
    sign = np.sign(total)
    return sign * (np.abs(total) // max(count, 1)).astype(total.dtype)


def _extreme(x: Array, axes: Axes, largest: bool) -> Array:
    if x.dtype.kind == "b":
        return (np.any if largest else np.all)(x, axes, keepdims=True)
    if x.dtype.kind in "iu":
        info = np.iinfo(x.dtype)
        start: float = info.min if largest else info.max
    else:
        start = -np.inf if largest else np.inf
    if all(x.shape[axis] for axis in axes):
        return (np.max if largest else np.min)(x, axes, keepdims=True)
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    return np.full(shape, start, dtype=x.dtype)


def _log_sum_exp(x: Array, axes: Axes) -> Array:
    real = x if x.dtype.kind == "f" else x.astype(np.float64)
    top = _extreme(real, axes, largest=True)
    top = np.where(np.isfinite(top), top, 0)
    result: Array = np.log(np.sum(np.exp(real - top), axes, keepdims=True)) + top
    return result


_REDUCTIONS: dict[str, Callable[[Array, Axes], Array]] = {
    "ReduceSum": _sum,
    "ReduceMean": _mean,
    "ReduceProd": lambda x, axes: np.prod(x, axes, keepdims=True, dtype=x.dtype),
    "ReduceMax": lambda x, axes: _extreme(x, axes, largest=True),
    "ReduceMin": lambda x, axes: _extreme(x, axes, largest=False),
    "ReduceL1": lambda x, axes: _sum(np.abs(x), axes),
    "ReduceL2": lambda x, axes: np.sqrt(_sum(np.square(_real(x)), axes)),
    "ReduceLogSum": lambda x, axes: np.log(_sum(x, axes).astype(_real(x).dtype)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": lambda x, axes: _sum(np.square(x), axes),
}


def _real(x: Array) -> Array:
    return x if x.dtype.kind == "f" else x.astype(np.float64)


@corrects(*_REDUCTIONS, reason="axes by attribute or input, empty sets, integers and small floats")
def reduce(call: Call, data: Array, axes: Array | None = None) -> Array:
    given = call.attr("axes") if axes is None else axes.reshape(-1)
    if given is None or len(given) == 0:
        noop = bool(call.attr("noop_with_empty_axes", 0))
        along: Axes = () if noop else tuple(range(data.ndim))
    else:
        along = normalize_axes(given, data.ndim)
    small = data.dtype.kind not in "iub"
    reduced = _REDUCTIONS[call.operator.name](accumulator(data) if small else data, along)
    reduced = cast_array(np.asarray(reduced), data.dtype)
    if call.attr("keepdims", 1):
        return reduced
    return reduced.squeeze(along)


@corrects("ArgMax", "ArgMin", reason="select_last_index, and an empty axis is an error")
def arg_extreme(call: Call, data: Array) -> Array:
    axis = normalize_axis(call.attr("axis", 0), data.ndim)
    if data.shape[axis] == 0:
        raise RunError(f"axis {axis} of shape {list(data.shape)} is empty", value=0)
    find = np.argmax if call.operator.name == "ArgMax" else np.argmin
    if call.attr("select_last_index", 0):
        index = data.shape[axis] - 1 - find(np.flip(data, axis), axis)
    else:
        index = find(data, axis)
    index = np.asarray(index).astype(np.int64)
    return np.expand_dims(index, axis) if call.attr("keepdims", 1) else index


@corrects("Softmax", "LogSoftmax", "Hardmax", reason="before opset 13 the axis splits a matrix")
def softmax_family(call: Call, x: Array) -> Array:
    if call.since >= 13:
        axis = normalize_axis(call.attr("axis", -1), max(x.ndim, 1))
        return (
            _softmax(call.operator.name, x, axis)
            if x.ndim
            else _softmax(call.operator.name, x.reshape(1), 0).reshape(())
        )
    axis = int(call.attr("axis", 1))
    axis = axis + x.ndim if axis < 0 else axis
    if not 0 <= axis <= x.ndim:
        raise RunError(f"axis {axis} is outside rank {x.ndim}", value=axis, limit=x.ndim)
    matrix = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    return _softmax(call.operator.name, matrix, 1).reshape(x.shape)


def _softmax(name: str, x: Array, axis: int) -> Array:
    if x.shape[axis] == 0:
        return x
    if name == "Hardmax":
        first = np.expand_dims(np.argmax(x, axis), axis)
        result = np.zeros_like(x)
        np.put_along_axis(result, first, np.ones((), x.dtype), axis)
        return result
    # float16 stays float16: the official cases are computed so, to within one unit.
    real = x if x.dtype.kind == "f" else accumulator(x)
    shifted = real - np.max(real, axis, keepdims=True)
    exponent = np.exp(shifted)
    total = np.sum(exponent, axis, keepdims=True)
    answer: Array = exponent / total if name == "Softmax" else shifted - np.log(total)
    return answer.astype(x.dtype, copy=False)


@corrects("CumSum", "CumProd", reason="the axis is checked; small floats run in float32")
def cumulative(call: Call, x: Array, axis: Array) -> Array:
    along = normalize_axis(int(axis.item()), x.ndim)
    real = x if x.dtype.kind in "iu" else accumulator(x)
    if call.attr("reverse", 0):
        real = np.flip(real, along)
    if call.attr("exclusive", 0):
        shape = [1 if i == along else size for i, size in enumerate(x.shape)]
        neutral = np.full(shape, 0 if call.operator.name == "CumSum" else 1, dtype=real.dtype)
        kept = np.take(real, range(max(x.shape[along] - 1, 0)), along)
        real = np.concatenate([neutral, kept], along) if x.shape[along] else real
    run = np.cumsum if call.operator.name == "CumSum" else np.cumprod
    result = run(real, along, dtype=real.dtype)
    if call.attr("reverse", 0):
        result = np.flip(result, along)
    return result.astype(x.dtype, copy=False)
