"""Support vector machines of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.back.common.scores import features, largest, transformed, type_of_sums
from sardonyx.conversion.back.language import Answer, Entry
from sardonyx.conversion.back.step import Step, number_text

__all__ = ["ENTRIES"]

_FLOAT = ir.DataType.FLOAT


def _kernel(step: Step, x: str, vectors: np.ndarray[Any, Any]) -> str:
    """Every row against every support vector, (rows, vectors)."""
    kind = step.word("kernel_type", "LINEAR", "RBF", "POLY", "SIGMOID")
    given = step.call.attr("kernel_params") or (0.0, 0.0, 0.0)
    if len(given) != 3:
        step.refuse(f"{len(given)} kernel_params where 3 are due")
    gamma, shift, degree = (number_text(np.float32(one)) for one in given)
    if kind == "RBF":
        apart = step.let("apart", f"{x}[:, None] - {step.table(vectors, 'vectors')}")
        away = step.say("sum", f"({apart} * {apart})", "(2,)", False)
        return step.say("Exp", f"-{gamma} * {away}")
    product = step.say("matmul", x, step.table(np.ascontiguousarray(vectors.T), "vectors"))
    if kind == "LINEAR":
        return product
    inner = f"{gamma} * ({product}) + {shift}"
    return f"({inner}) ** {degree}" if kind == "POLY" else step.say("Tanh", inner)


def _sums(step: Step, vectors: Sequence[float], weights: Any, rho: Any) -> str:
    """Kernels times weights plus rho, (rows, columns of weights); without vectors features times weights."""
    real = type_of_sums(step)
    kind, x = real.numpy(), features(step, real)
    columns = np.asarray(weights, kind)
    if len(vectors):
        seen = _kernel(step, x, np.array(vectors, kind).reshape(len(columns), -1))
        x = step.let("alike", seen)
    table = step.table(columns, "coefficients", trained=True)
    text = f"{step.say('matmul', x, table)} + {step.table(np.asarray(rho, kind), 'rho')}"
    return step.let("scores", text)


def _plain(step: Step, scores: str) -> str:
    return scores if type_of_sums(step) == _FLOAT else step.let("scores", step.cast(scores, _FLOAT))


def _regressor(step: Step) -> Answer:
    call = step.call
    weights, vectors = call.attr("coefficients") or (), call.attr("support_vectors") or ()
    supports = call.int_attr("n_supports", 0)
    if not weights or (supports > 0 and (len(vectors) % supports or len(weights) != supports)):
        step.refuse(f"{len(vectors)} numbers of {supports} support vectors")
    rho = (call.attr("rho") or (0.0,))[:1]
    seen = vectors if supports > 0 else ()
    scores = _sums(step, seen, np.array(weights)[:, None], rho)
    if call.int_attr("one_class", 0):
        inside = step.cast(f"({scores} > 0)", _FLOAT)
        return transformed(step, f"2 * {inside} - 1", call.str_attr("post_transform", "NONE"))
    return transformed(step, _plain(step, scores), call.str_attr("post_transform", "NONE"))


def _classifier(step: Step) -> Answer:
    """Support vectors vote on every pair of classes, or stand for one class each."""
    call = step.call
    labels = call.ints_attr("classlabels_ints") or ()
    per_class = call.ints_attr("vectors_per_class") or ()
    weights, rho = call.attr("coefficients") or (), call.attr("rho") or ()
    if call.attr("prob_a"):
        step.refuse("probabilities are fitted to votes by an iteration")
    if not labels or not weights or not rho:
        step.refuse("it has no labels, no coefficients or no rho")
    transform = call.str_attr("post_transform", "NONE")
    if not sum(per_class):
        if len(weights) % len(labels):
            step.refuse(f"{len(weights)} coefficients for {len(labels)} labels")
        scores = _sums(step, (), np.array(weights).reshape(len(labels), -1).T, rho[:1])
        return [largest(step, labels, scores), transformed(step, _plain(step, scores), transform)]
    scores = _sums(step, call.attr("support_vectors") or (), *_pairs(step, labels, per_class))
    label = largest(step, labels, _votes(step, scores, len(labels)))
    scores = _plain(step, scores)
    if len(labels) == 2:
        scores = step.say("concat", f"-{scores}, {scores}", 1)
    return [label, transformed(step, scores, transform)]


def _pairs(step: Step, labels: Sequence[int], per_class: Sequence[int]) -> tuple[Any, Any]:
    """(vectors, pairs): the coefficients of each pair's vectors, where libsvm keeps them; and rho."""
    total, count = sum(per_class), len(per_class)
    weights, rho = step.call.attr("coefficients"), step.call.attr("rho")
    vectors = step.call.attr("support_vectors") or ()
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    fits = len(weights) == total * (count - 1) and len(vectors) % total == 0 and len(vectors) > 0
    if not fits or len(labels) != count or len(rho) < len(pairs) or not pairs:
        step.refuse("the support vectors, coefficients, labels or rho are not complete")
    alpha, ends = np.array(weights).reshape(count - 1, total), np.cumsum([0, *per_class])
    columns = np.zeros((total, len(pairs)))
    for number, (i, j) in enumerate(pairs):
        for mine, other in ((i, j - 1), (j, i)):
            own = slice(ends[mine], ends[mine + 1])
            columns[own, number] = alpha[other, own]
    return columns, rho[: len(pairs)]


def _votes(step: Step, scores: str, count: int) -> str:
    """How many pairs decide for each class: for the first of the two above 0, else for the second."""
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    gained, begin = np.zeros((len(pairs), count), np.float32), np.zeros(count, np.float32)
    for number, (i, j) in enumerate(pairs):
        gained[number, i], gained[number, j] = 1, -1
        begin[j] += 1
    first = step.cast(f"({scores} > 0)", _FLOAT)
    return (
        f"{step.say('matmul', first, step.table(gained, 'gained'))} + {step.table(begin, 'begin')}"
    )


ENTRIES: Mapping[str, Entry] = {"SVMRegressor": _regressor, "SVMClassifier": _classifier}
