"""The two losses of the main domain, with targets checked."""

from __future__ import annotations

import numpy as np

from sardonyx.backends.reference.corrections.accumulation import accumulator
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError


@corrects("NegativeLogLikelihoodLoss", reason="a target that is no class is an error")
def nll_loss(call: Call, scores: Array, target: Array, weight: Array | None = None) -> Array:
    return _loss(call, accumulator(scores), target, weight).astype(scores.dtype)


@corrects("SoftmaxCrossEntropyLoss", reason="a target that is no class is an error")
def softmax_loss(
    call: Call, scores: Array, labels: Array, weight: Array | None = None
) -> tuple[Array, Array]:
    wide = accumulator(scores)
    shifted = wide - wide.max(1, keepdims=True)
    log = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return _loss(call, log, labels, weight).astype(scores.dtype), log.astype(scores.dtype)


def _loss(call: Call, log: Array, target: Array, weight: Array | None) -> Array:
    """log is [N, C, …]; each target picks one of C, unless it is to be ignored."""
    classes = log.shape[1]
    expected = (log.shape[0], *log.shape[2:])
    if target.shape != expected:
        raise RunError(
            f"targets of shape {list(target.shape)}, where {list(expected)} is needed",
            value=target.shape,
        )
    ignored = np.zeros(target.shape, dtype=bool)
    if call.has("ignore_index"):
        ignored = target == call.attr("ignore_index")
    outside = ~ignored & ((target < 0) | (target >= classes))
    if outside.any():
        first = int(target[outside].flat[0])
        raise RunError(f"target {first} is none of {classes} classes", value=first, limit=classes)
    index = np.where(ignored, 0, target).astype(np.int64)
    picked = np.take_along_axis(log, index[:, None], 1)[:, 0]
    factor = np.ones(classes, log.dtype) if weight is None else accumulator(weight)
    weights = np.where(ignored, 0, factor[index]).astype(log.dtype)
    loss = -picked * weights
    reduction = call.attr("reduction", "mean")
    if reduction == "none":
        return loss
    if reduction == "sum":
        return np.asarray(loss.sum())
    if reduction != "mean":
        raise RunError(f"reduction {reduction!r} is unknown", value=reduction)
    return np.asarray(loss.sum() / weights.sum())
