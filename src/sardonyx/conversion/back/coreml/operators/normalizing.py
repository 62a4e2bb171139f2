"""Normalizations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from sardonyx.conversion.back.coreml.operators.reducing import reduced
from sardonyx.conversion.back.coreml.step import Entry, Step

__all__ = ["ENTRIES"]

_SQRT = 0  # UnaryFunctionLayerParams.Operation
_IMAGE = 4  # axes of what CoreML normalizes along its channels


def batch_norm(step: Step) -> str:
    """By CoreML's own layer over images, as a product and a sum elsewhere."""
    if step.flag("training_mode"):
        step.refuse("it takes its statistics from the batch (training_mode)")
    names = ("scale", "shift", "mean", "variance")
    scale, shift, mean, variance = (
        step.weight(index, name) for index, name in enumerate(names, start=1)
    )
    epsilon = step.number("epsilon", 1e-5)
    if step.rank(0) == _IMAGE and epsilon > 0:
        return step.layer(
            "batchnorm",
            step[0],
            channels=scale.size,
            epsilon=epsilon,
            gamma=scale,
            beta=shift,
            mean=mean,
            variance=variance,
        )
    factor = scale.astype(float) / np.sqrt(variance.astype(float) + epsilon)
    shape = (-1, *[1] * (step.rank(0) - 2))
    made = step.layer("multiplyBroadcastable", step[0], step.constant(factor.reshape(shape)))
    rest = (shift - mean * factor).reshape(shape)
    return step.layer("addBroadcastable", made, step.constant(rest))


def instance_norm(step: Step) -> str:
    scale, shift = step.weight(1, "scale"), step.weight(2, "shift")
    epsilon, rank = step.number("epsilon", 1e-5), step.rank(0)
    if rank == _IMAGE and epsilon > 0:
        return step.layer(
            "batchnorm",
            step[0],
            channels=scale.size,
            computeMeanVar=True,
            instanceNormalization=True,
            epsilon=epsilon,
            gamma=scale,
            beta=shift,
        )
    made = _normalized(step, step[0], range(2, rank), epsilon)
    shape = (-1, *[1] * (rank - 2))
    made = step.layer("multiplyBroadcastable", made, step.constant(scale.reshape(shape)))
    return step.layer("addBroadcastable", made, step.constant(shift.reshape(shape)))


def group_norm(step: Step) -> str:
    """Groups of channels as rows of their own."""
    shape, groups = step.shape(0), step.call.int_attr("num_groups")
    sizes = step.fixed(shape[1:], "every size but the batch's")
    rows = (shape[0], groups, prod(sizes) // groups)
    made = step.reshape(step[0], shape, rows)
    made = _normalized(step, made, [2], step.number("epsilon", 1e-5))
    made = step.reshape(made, rows, shape)
    line = (-1, *[1] * (len(shape) - 2))
    for kind, index, what in (
        ("multiplyBroadcastable", 1, "scale"),
        ("addBroadcastable", 2, "shift"),
    ):
        made = step.layer(kind, made, step.constant(step.weight(index, what).reshape(line)))
    return made


def layer_norm(step: Step) -> str:
    if step.wants(1) or step.wants(2):
        step.refuse("it gives its statistics too")
    axis, epsilon = step.axis(-1), step.number("epsilon", 1e-5)
    sizes = step.shape(0)[axis:]
    scale, shift = step.numbers(1), step.numbers(2) if step.has(2) else None
    known = all(isinstance(size, int) for size in sizes)
    if scale is not None and known and (shift is not None or not step.has(2)) and epsilon > 0:
        shape = step.fixed(sizes, "its shape")
        zeros = np.zeros(1, np.float32)
        return step.layer(
            "layerNormalization",
            step[0],
            normalizedShape=shape,
            eps=epsilon,
            gamma=np.array(np.broadcast_to(scale, shape)),
            beta=np.array(np.broadcast_to(zeros if shift is None else shift, shape)),
        )
    made = _normalized(step, step[0], range(axis, step.rank(0)), epsilon)
    made = step.layer("multiplyBroadcastable", made, step[1])
    return step.layer("addBroadcastable", made, step[2]) if step.has(2) else made


def rms_norm(step: Step) -> str:
    axes = range(step.axis(-1), step.rank(0))
    square = step.layer("multiplyBroadcastable", step[0], step[0])
    mean = step.shifted(reduced(step, "reduceMean", square, axes), step.number("epsilon", 1e-5))
    made = step.layer("divideBroadcastable", step[0], step.layer("unary", mean, type=_SQRT))
    return step.layer("multiplyBroadcastable", made, step[1])


def _normalized(step: Step, blob: str, axes: Sequence[int], epsilon: float) -> str:
    """Without its mean, and divided by its deviation."""
    centred = step.layer("subtractBroadcastable", blob, reduced(step, "reduceMean", blob, axes))
    square = step.layer("multiplyBroadcastable", centred, centred)
    variance = step.shifted(reduced(step, "reduceMean", square, axes), epsilon)
    return step.layer("divideBroadcastable", centred, step.layer("unary", variance, type=_SQRT))


def local_response(step: Step) -> str:
    if step.rank(0) != _IMAGE:
        step.refuse("its operand is no image")
    return step.layer(
        "lrn",
        step[0],
        localSize=step.call.int_attr("size"),
        alpha=step.number("alpha", 1e-4),
        beta=step.number("beta", 0.75),
        k=step.number("bias", 1.0),
    )


ENTRIES: Mapping[str, Entry] = {
    "BatchNormalization": batch_norm,
    "GroupNormalization": group_norm,
    "InstanceNormalization": instance_norm,
    "LRN": local_response,
    "LayerNormalization": layer_norm,
    "RMSNormalization": rms_norm,
}
