"""How the classifiers and regressors of ai.onnx.ml turn raw scores into what they put out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.backends.reference.corrections.activations import sigmoid
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

__all__ = ["class_labels", "label_array", "transformed"]


def transformed(scores: Array, transform: str) -> Array:
    """Apply `post_transform` to rows of scores."""
    if transform in ("NONE", "", None):
        return scores
    if transform == "LOGISTIC":
        return sigmoid(scores)
    if transform == "PROBIT":
        return _probit(scores)
    if transform not in ("SOFTMAX", "SOFTMAX_ZERO"):
        raise RunError(f"post_transform {transform!r} is unknown", value=transform)
    if scores.shape[1] == 0:
        return scores
    top = scores.max(1, keepdims=True)
    exponent = np.exp(scores - top)
    if transform == "SOFTMAX_ZERO":
        # A score of 0 stays 0: the class had no vote.
        exponent = np.where(np.abs(scores) > 1e-7, exponent, scores * np.exp(-top))
    total = exponent.sum(1, keepdims=True)
    return np.where(total == 0, 0.5, exponent / np.where(total == 0, 1, total)).astype(scores.dtype)


def _probit(scores: Array) -> Array:
    """√2 × erf⁻¹(2 p - 1), by Winitzki's approximation, as every engine computes it."""
    x = 2 * scores.astype(np.float64) - 1
    log = np.log((1 - x) * (1 + x))
    half = 2 / (np.pi * 0.147) + 0.5 * log
    inverse = np.sign(x) * np.sqrt(np.sqrt(half * half - log / 0.147) - half)
    return (1.41421356 * inverse).astype(scores.dtype)


def class_labels(call: Call, integers: str, strings: str) -> Array:
    """The labels of the classes, of whichever type the node has."""
    if call.attr(strings):
        return np.array(call.attr(strings), dtype=object)
    return np.array(call.attr(integers) or (), dtype=np.int64)


def label_array(labels: Array, chosen: Sequence[int] | Array) -> Array:
    """The labels of the chosen classes."""
    return labels[np.asarray(chosen, dtype=np.int64)]
