"""Normalisations and the softmax family."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape
from sardonyx.ops.lowerings import norms, softmaxes
from sardonyx.ops.plain import flops_per_input, same_shape
from sardonyx.sizes import Size

__all__ = ["OPERATORS"]


def along_axis(default: int, call: Call) -> list[Facts]:
    """The output has the input's shape; the axis must exist."""
    shape = call.input(0).shape
    if shape is not None and (shape or call.attr("axis") is not None):
        axis = call.int_attr("axis", default)
        # Before opset 13 the axis was where the input flattens to a matrix: the rank itself is one.
        if not (call.version < 13 and axis == len(shape)):
            call.axis(axis, max(len(shape), 1))
    return [call.same()]


def softmax(call: Call) -> list[Facts]:
    return along_axis(-1 if call.version >= 13 else 1, call)


def last_axis(call: Call) -> list[Facts]:
    return along_axis(-1, call)


def mean_variance(call: Call) -> list[Facts]:
    """By default over batch and space of images."""
    shape = call.input(0).shape
    if shape is not None:
        call.axes(call.ints_attr("axes") or (0, 2, 3), len(shape))
    return [call.same()]


def _channels(call: Call, shape: Shape | None) -> Size:
    """Batch normalisation: the second dimension, or one channel when there is none."""
    if shape is None:
        return call.fresh(0, 1)
    return shape[1] if len(shape) > 1 else 1


def batch_norm(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    channels = _channels(call, shape)
    if call.version < 9 and not call.attr("spatial", 1):
        # One mean and variance for each element: their shape is C×D1×…
        return [call.same(), *(call.out(None, output) for output in range(1, 5))]
    for index in range(1, len(call.inputs)):
        parameter = call.need_rank(index, 1) if call.has(index) else None
        if parameter is not None and call.version >= 7:
            channels = call.agree(channels, parameter[0], f"channels and input {index}")
    return [call.same(), *(call.out((channels,), output) for output in range(1, 5))]


def layer_norm(call: Call) -> list[Facts]:
    """Mean and inverse deviation keep the dimensions before the axis."""
    shape = call.input(0).shape
    stash = call.dtype_attr("stash_type") or ir.DataType.FLOAT
    if shape is None:
        return [call.same(), call.out(None, 1, stash), call.out(None, 2, stash)]
    axis = call.axis(call.int_attr("axis", -1), len(shape))
    folded = (*shape[:axis], *(1 for _ in shape[axis:]))
    return [call.same(), call.out(folded, 1, stash), call.out(folded, 2, stash)]


def group_norm(call: Call) -> list[Facts]:
    shape, groups = call.input(0).shape, call.int_attr("num_groups", 1)
    if shape is not None:
        if len(shape) < 3:
            call.fail(f"input has rank {len(shape)}, but batch, channels and space are needed")
        channels = shape[1]
        if isinstance(channels, int) and (groups < 1 or channels % groups):
            call.fail(f"{channels} channels do not divide into {groups} groups")
    return [call.same()]


def instance_norm(call: Call) -> list[Facts]:
    shape = call.input(0).shape
    if shape is not None:
        if len(shape) < 2:
            call.fail(f"input has rank {len(shape)}, but batch and channels are needed")
        for index in (1, 2):
            parameter = call.need_rank(index, 1)
            if parameter is not None:
                call.agree(shape[1], parameter[0], f"channels and input {index}")
    return [call.same()]


def lrn_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    return flops_per_input(2 * call.int_attr("size", 1) + 3)(call, outputs)


# Operations for each element: statistics, normalising, scale and shift.
OPERATORS = (
    Operator("Softmax", "reduction", softmax, cost=flops_per_input(5), lower=softmaxes.SOFTMAX),
    Operator(
        "LogSoftmax", "reduction", softmax, cost=flops_per_input(5), lower=softmaxes.LOG_SOFTMAX
    ),
    Operator("Hardmax", "reduction", softmax, cost=flops_per_input(2), lower=softmaxes.HARDMAX),
    Operator(
        "BatchNormalization",
        "pointwise",
        batch_norm,
        cost=flops_per_input(2),
        lower=norms.BATCH_NORM,
    ),
    Operator(
        "InstanceNormalization",
        "reduction",
        instance_norm,
        cost=flops_per_input(7),
        lower=norms.INSTANCE_NORM,
    ),
    Operator(
        "LayerNormalization",
        "reduction",
        layer_norm,
        cost=flops_per_input(7),
        lower=norms.LAYER_NORM,
    ),
    Operator(
        "RMSNormalization", "reduction", last_axis, cost=flops_per_input(4), lower=norms.RMS_NORM
    ),
    Operator(
        "GroupNormalization",
        "reduction",
        group_norm,
        cost=flops_per_input(7),
        lower=norms.GROUP_NORM,
    ),
    Operator(
        "LpNormalization", "reduction", last_axis, cost=flops_per_input(3), lower=norms.LP_NORM
    ),
    Operator(
        "MeanVarianceNormalization",
        "reduction",
        mean_variance,
        cost=flops_per_input(5),
        lower=norms.MEAN_VARIANCE_NORM,
    ),
    Operator("LRN", "reduction", same_shape, cost=lrn_cost, lower=norms.LRN),
)
