"""Normalisations whose older versions, training outputs or speed need our own hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sardonyx.backends.reference.corrections.accumulation import accumulator, average
from sardonyx.backends.reference.corrections.axes import normalize_axes, normalize_axis
from sardonyx.backends.reference.corrections.casting import numpy_dtype
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError


@corrects("BatchNormalization", reason="each version's own sign of training, and spatial = 0")
def batch_normalization(
    call: Call, x: Array, scale: Array, bias: Array, mean: Array, var: Array
) -> tuple[Array, ...]:
    wide = accumulator(x)
    spatial = bool(call.attr("spatial", 1))
    if not spatial:
        parameters = [p.reshape(x.shape[1:]) for p in (scale, bias, mean, var)]
        axes: tuple[int, ...] = (0,)
    else:
        tail = [1] * max(x.ndim - 2, 0)
        parameters = [p.reshape((-1, *tail)) for p in (scale, bias, mean, var)]
        axes = (0, *range(2, x.ndim))
    gain, shift, old_mean, old_var = (accumulator(p) for p in parameters)
    if not _is_training(call):
        return (_normalized(call, wide, gain, shift, old_mean, old_var).astype(x.dtype),)
    batch_mean = average(wide, axes)[0]
    batch_var = average(np.square(wide - batch_mean), axes)[0]
    momentum = np.asarray(call.attr("momentum", 0.9), dtype=wide.dtype)
    running = [
        (old * momentum + new * (1 - momentum)).reshape(mean.shape).astype(mean.dtype)
        for old, new in ((old_mean, batch_mean), (old_var, batch_var))
    ]
    y = _normalized(call, wide, gain, shift, batch_mean, batch_var).astype(x.dtype)
    saved = [value.reshape(mean.shape).astype(mean.dtype) for value in (batch_mean, batch_var)]
    return (y, *running, *saved) if call.since < 14 else (y, *running)


def _is_training(call: Call) -> bool:
    if call.since < 7:
        return not call.attr("is_test", 0)
    if call.since < 14:
        return any(call.wants(index) for index in range(1, call.outputs))
    return bool(call.attr("training_mode", 0))


def _normalized(call: Call, x: Array, gain: Array, shift: Array, mean: Array, var: Array) -> Array:
    epsilon = np.asarray(call.attr("epsilon", 1e-5), dtype=x.dtype)
    factor = gain / np.sqrt(var + epsilon)
    result: Array = (x - mean) * factor + shift
    return result


@corrects("InstanceNormalization", reason="small floats are summed in float32")
def instance_normalization(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    wide = accumulator(x)
    axes = tuple(range(2, x.ndim))
    shape = (-1, *[1] * (x.ndim - 2))
    gain, shift = accumulator(scale).reshape(shape), accumulator(bias).reshape(shape)
    mean = average(wide, axes)
    var = average(np.square(wide - mean), axes)
    return _normalized(call, wide, gain, shift, mean, var).astype(x.dtype, copy=False)


@corrects(
    "GroupNormalization",
    reason="the variance by its definition: the body takes the square of the mean off a mean of squares, "
    "which loses digits and is NaN where squares overflow",
)
def group_normalization(call: Call, x: Array, scale: Array, bias: Array) -> tuple[Array, ...]:
    groups = int(call.attr("num_groups", 1))
    stash = numpy_dtype(call.attr("stash_type", 1)) if call.since >= 21 else accumulator(x).dtype
    each = math.prod(x.shape[1:]) // groups
    parts = x.astype(stash).reshape(x.shape[0], groups, each)
    mean = average(parts, (2,))
    var = average(np.square(parts - mean), (2,))
    epsilon = np.asarray(call.attr("epsilon", 1e-5), dtype=parts.dtype)
    normal = ((parts - mean) / np.sqrt(var + epsilon)).reshape(x.shape).astype(x.dtype)
    if call.since < 21:  # one scale and bias a group
        scale, bias = (np.repeat(p, x.shape[1] // groups) for p in (scale, bias))
    tail = (-1, *(1,) * (x.ndim - 2))
    y = accumulator(normal) * accumulator(scale).reshape(tail) + accumulator(bias).reshape(tail)
    return (y.astype(x.dtype),)


@corrects(
    "LayerNormalization", reason="the first stage in stash_type, and its statistics put out so"
)
def layer_normalization(
    call: Call, x: Array, scale: Array, bias: Array | None = None
) -> tuple[Array, Array, Array]:
    axis = normalize_axis(call.attr("axis", -1), x.ndim)
    stash = numpy_dtype(call.attr("stash_type", 1))
    wide = x.astype(stash, copy=False)
    axes = tuple(range(axis, x.ndim))
    mean = average(wide, axes)
    centred = wide - mean
    epsilon = np.asarray(call.attr("epsilon", 1e-5), dtype=stash)
    inverse = 1 / np.sqrt(average(np.square(centred), axes) + epsilon)
    normal = (centred * inverse).astype(_computed(x, stash), copy=False)
    y = normal * scale.astype(normal.dtype, copy=False)
    if bias is not None:
        y = y + bias.astype(normal.dtype, copy=False)
    return y.astype(x.dtype, copy=False), mean, inverse.astype(stash, copy=False)


@corrects("RMSNormalization", reason="the first stage in stash_type")
def rms_normalization(call: Call, x: Array, scale: Array) -> Array:
    axis = normalize_axis(call.attr("axis", -1), x.ndim)
    stash = numpy_dtype(call.attr("stash_type", 1))
    wide = x.astype(stash, copy=False)
    mean = average(np.square(wide), tuple(range(axis, x.ndim)))
    root = np.sqrt(mean + np.asarray(call.attr("epsilon", 1e-5), dtype=stash))
    normal = (wide / root).astype(_computed(x, stash), copy=False)
    return (normal * scale.astype(normal.dtype, copy=False)).astype(scale.dtype, copy=False)


def _computed(x: Array, stash: np.dtype[Any]) -> np.dtype[Any]:
    """The type of the second stage: small floats are rounded once, at its end."""
    wide = np.dtype(np.float32) if x.dtype.itemsize < 4 else x.dtype
    return stash if stash.itemsize > wide.itemsize else wide


@corrects("MeanVarianceNormalization", reason="the standard's own body adds float to float16")
def mean_variance_normalization(call: Call, x: Array) -> Array:
    axes = normalize_axes(call.attr("axes", (0, 2, 3)), x.ndim)
    wide = accumulator(x)
    centred = wide - average(wide, axes)
    deviation = np.sqrt(average(np.square(centred), axes))
    return (centred / (deviation + wide.dtype.type(1e-9))).astype(x.dtype, copy=False)


@corrects("LRN", reason="any rank, and the window is summed without a loop over channels")
def lrn(call: Call, x: Array) -> Array:
    size = int(call.attr("size"))
    if size < 1:
        raise RunError(f"size is {size}; one channel or more is needed", value=size)
    alpha, beta, bias = (call.attr(n, d) for n, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1)))
    wide = accumulator(x)
    channels = x.shape[1]
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    running = np.cumsum(np.square(wide.astype(np.float64)), axis=1)
    running = np.concatenate([np.zeros_like(running[:, :1]), running], axis=1)
    at = np.arange(channels)
    high = np.minimum(at + after + 1, channels)
    total = running[:, high] - running[:, np.maximum(at - before, 0)]
    return (wide / np.power(bias + alpha / size * total, beta)).astype(x.dtype)


@corrects(
    "LpNormalization", reason="a zero vector stays zero, and p other than 1 and 2 is an error"
)
def lp_normalization(call: Call, x: Array) -> Array:
    axis, order = normalize_axis(call.attr("axis", -1), x.ndim), int(call.attr("p", 2))
    if order not in (1, 2):
        raise RunError(f"p is {order}, not 1 or 2", value=order)
    wide = accumulator(x)
    norm = np.linalg.norm(wide, order, axis, keepdims=True)
    return np.where(norm == 0, 0, wide / np.where(norm == 0, 1, norm)).astype(x.dtype)


@corrects(
    "Dropout", until=7, reason="opset 1 and 6 say by is_test whether they train; 7 never does"
)
@corrects("Dropout", since=10, until=10, reason="inference only: the mask is all true")
def dropout_inference(call: Call, x: Array) -> tuple[Array, Array]:
    if call.since < 7 and not call.attr("is_test", 0):
        raise RunError(
            "a training Dropout of opset 6 or earlier has no seed to repeat it by",
            hint="Export the model for inference, or convert it to opset 12 or later.",
        )
    mask_type = np.bool_ if call.since >= 10 else x.dtype
    return x, np.ones(x.shape, dtype=mask_type)
