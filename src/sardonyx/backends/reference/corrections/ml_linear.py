"""Linear models and support vector machines of ai.onnx.ml."""

from __future__ import annotations

import numpy as np

from sardonyx.backends.reference.corrections.ml_scores import (
    class_labels,
    label_array,
    transformed,
)
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_ML = "ai.onnx.ml"


def _matrix(x: Array) -> Array:
    x = x.reshape(1, -1) if x.ndim == 1 else x
    if x.ndim != 2:
        raise RunError(f"the input has shape {list(x.shape)}, not [N, F]", value=x.shape)
    return x.astype(np.float64)


@corrects("LinearRegressor", domain=_ML, reason="every post_transform; intercepts may be left out")
def linear_regressor(call: Call, x: Array) -> Array:
    rows = _matrix(x)
    targets = int(call.attr("targets", 1))
    weights = np.array(call.attr("coefficients", ()), dtype=np.float64)
    if weights.size != targets * rows.shape[1]:
        raise RunError(f"{weights.size} coefficients for {targets} × {rows.shape[1]}")
    scores = rows @ weights.reshape(targets, -1).T
    if call.has("intercepts"):
        scores = scores + np.array(call.attr("intercepts"))
    return transformed(scores.astype(np.float32), call.attr("post_transform", "NONE"))


@corrects("LinearClassifier", domain=_ML, reason="string labels, and one score for two labels")
def linear_classifier(call: Call, x: Array) -> tuple[Array, Array]:
    rows = _matrix(x)
    weights = np.array(call.attr("coefficients"), dtype=np.float64)
    if rows.shape[1] == 0 or weights.size % rows.shape[1]:
        raise RunError(f"{weights.size} coefficients for {rows.shape[1]} features")
    scores = rows @ weights.reshape(-1, rows.shape[1]).T
    if call.has("intercepts"):
        scores = scores + np.array(call.attr("intercepts"))
    labels = class_labels(call, "classlabels_ints", "classlabels_strings")
    transform = call.attr("post_transform", "NONE")
    single = scores.shape[1] == 1
    if single and len(labels) == 2:
        chosen = (scores[:, 0] > 0).astype(np.int64)
        scores = np.concatenate([-scores, scores], 1)
    elif single:
        # One label: those rows that reach it, else the other of 0 and 1 or the empty string.
        other = np.array([""], dtype=object) if labels.dtype == object else np.array([0])
        labels = np.concatenate([other, labels if len(labels) else np.array([1])])
        chosen = (scores[:, 0] > 0).astype(np.int64)
    else:
        chosen = np.argmax(scores, axis=1)
    return label_array(labels, chosen), transformed(scores.astype(np.float32), transform)


def _kernel(call: Call, x: Array, vectors: Array, kind: str) -> Array:
    """Every row against every support vector."""
    gamma, shift, degree = call.attr("kernel_params") or (0.0, 0.0, 0.0)
    if kind == "LINEAR":
        return x @ vectors.T
    if kind == "POLY":
        return (gamma * (x @ vectors.T) + shift) ** degree
    if kind == "SIGMOID":
        return np.tanh(gamma * (x @ vectors.T) + shift)
    if kind == "RBF":
        call.claim(x.shape[0] * vectors.shape[0] * 8)
        squares = (x**2).sum(1)[:, None] + (vectors**2).sum(1)[None, :] - 2 * x @ vectors.T
        return np.exp(-gamma * np.maximum(squares, 0))
    raise RunError(f"kernel_type {kind!r} is unknown", value=kind)


@corrects("SVMRegressor", domain=_ML, reason="vectorised, every post_transform")
def svm_regressor(call: Call, x: Array) -> Array:
    rows = _matrix(x)
    supports = int(call.attr("n_supports", 0))
    weights = np.array(call.attr("coefficients", ()), dtype=np.float64)
    if supports > 0:
        vectors = np.array(call.attr("support_vectors"), dtype=np.float64).reshape(supports, -1)
        score = _kernel(call, rows, vectors, call.attr("kernel_type", "LINEAR")) @ weights
    else:
        score = rows @ weights
    score = (score + call.attr("rho", (0.0,))[0]).reshape(-1, 1)
    if call.attr("one_class", 0):
        score = np.where(score > 0, 1.0, -1.0)
    return transformed(score.astype(np.float32), call.attr("post_transform", "NONE"))


@corrects("SVMClassifier", domain=_ML, reason="vectorised over rows; string labels")
def svm_classifier(call: Call, x: Array) -> tuple[Array, Array]:
    rows = _matrix(x)
    labels = class_labels(call, "classlabels_ints", "classlabels_strings")
    per_class = [int(count) for count in call.attr("vectors_per_class", ())]
    transform = call.attr("post_transform", "NONE")
    weights = np.array(call.attr("coefficients"), dtype=np.float64)
    if sum(per_class) == 0:
        scores = rows @ weights.reshape(max(len(labels), 1), -1).T + call.attr("rho")[0]
        chosen = np.argmax(scores, axis=1)
        return label_array(labels, chosen), transformed(scores.astype(np.float32), transform)
    pairs, votes = _pairwise(call, rows, per_class, weights)
    if call.attr("prob_a"):
        scores = _coupled(call, pairs, len(per_class))
    else:
        scores = np.concatenate([-pairs, pairs], 1) if pairs.shape[1] == 1 else pairs
    # The votes decide, as in LIBSVM; probabilities may rank close classes otherwise.
    chosen = np.argmax(votes, axis=1)
    return label_array(labels, chosen), transformed(scores.astype(np.float32), transform)


def _pairwise(call: Call, rows: Array, per_class: list[int], weights: Array) -> tuple[Array, Array]:
    """One score a pair of classes, and the votes that their signs give."""
    supports = sum(per_class)
    vectors = np.array(call.attr("support_vectors"), dtype=np.float64).reshape(supports, -1)
    kernel = _kernel(call, rows, vectors, call.attr("kernel_type", "LINEAR"))
    table = weights.reshape(-1, supports)
    starts = np.concatenate([[0], np.cumsum(per_class)])
    votes = np.zeros((len(rows), len(per_class)))
    rho = call.attr("rho")
    scores: list[Array] = []
    for i in range(len(per_class)):
        of_i = slice(starts[i], starts[i + 1])
        for j in range(i + 1, len(per_class)):
            of_j = slice(starts[j], starts[j + 1])
            score = kernel[:, of_i] @ table[j - 1, of_i] + kernel[:, of_j] @ table[i, of_j]
            score = score + rho[len(scores)]
            votes[:, i] += score > 0
            votes[:, j] += score <= 0
            scores.append(score)
    return np.stack(scores, 1), votes


def _coupled(call: Call, pairs: Array, classes: int) -> Array:
    """Probabilities of classes from those of pairs, by the iteration of LIBSVM."""
    prob_a, prob_b = call.attr("prob_a"), call.attr("prob_b")
    pairwise = np.zeros((len(pairs), classes, classes))
    place = 0
    for i in range(classes):
        for j in range(i + 1, classes):
            value = pairs[:, place] * prob_a[place] + prob_b[place]
            p = np.clip(1 / (1 + np.exp(np.clip(value, -500, 500))), 1e-7, 1 - 1e-7)
            pairwise[:, i, j], pairwise[:, j, i] = p, 1 - p
            place += 1
    return (
        np.stack([_couple(matrix) for matrix in pairwise]) if len(pairs) else np.zeros((0, classes))
    )


def _couple(r: Array) -> Array:
    k = len(r)
    p = np.full(k, 1 / k)
    q = -(r.T * r)
    np.fill_diagonal(q, (r**2).sum(0) - np.diag(r) ** 2)
    for _ in range(max(100, k)):
        qp = q @ p
        pqp = p @ qp
        if np.abs(qp - pqp).max() < 0.005 / k:
            break
        for t in range(k):
            step = (pqp - qp[t]) / q[t, t]
            p[t] += step
            pqp = (pqp + step * (step * q[t, t] + 2 * qp[t])) / (1 + step) ** 2
            qp = (qp + step * q[t]) / (1 + step)
            p = p / (1 + step)
    return p
