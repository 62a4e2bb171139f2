"""Linear models and support vector machines of ai.onnx.ml: one row at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.loops.build import cast, maximum, where
from sardonyx.loops.nodes import Dtype, Expr, apply, const
from sardonyx.loops.scalars import NUMPY_TYPES
from sardonyx.ops.lowering import Nest, Site
from sardonyx.ops.lowerings.checks import require_equal
from sardonyx.ops.lowerings.scores import (
    Scores,
    largest_score,
    numbers,
    store_labels,
    store_scores,
)
from sardonyx.sizes import Size

__all__ = ["LINEAR_CLASSIFIER", "LINEAR_REGRESSOR", "SVM_CLASSIFIER", "SVM_REGRESSOR"]

MAX_TARGETS = 4096  # whose scores are on the stack
MAX_PAIRS = 64  # of classes; the code of each is written out


def _real(site: Site) -> Dtype:
    """The type of sums: doubles where float32 does not hold the features."""
    return "f32" if site.dtype(0) in ("f32", "f16", "bf16") else "f64"


def _rows(site: Site) -> Size:
    shape = site.shape(0)
    return shape[0] if len(shape) == 2 else 1


def _feature(site: Site, row: Size, column: Size) -> Expr:
    at = (row, column) if len(site.shape(0)) == 2 else (column,)
    return cast(site.operand(0, at), _real(site))


def _check_width(site: Site, width: int) -> None:
    features = site.shape(0)[-1]
    if isinstance(features, int) and features != width:
        site.refuse(f"coefficients for {width} features, but there are {features}")
    require_equal(site, features, width, "features and coefficients")


def _products(site: Site, row: Size, table: str, width: int, targets: int) -> str:
    """The row times every row of the table, on the stack."""
    b, real = site.b, _real(site)
    if targets > MAX_TARGETS:
        site.refuse(f"{targets} targets are more than {MAX_TARGETS}")
    scores = b.array(real, targets)
    with b.loop(targets) as k:
        total = b.local(const(0, real))
        with b.loop(width, "vector") as j:
            b.set(total, total + _feature(site, row, j) * b.load(table, k * width + j))
        b.put(scores, k, total)
    return scores


def _linear(site: Site, targets: int, finish: Callable[[Size, Scores], None]) -> None:
    """Scores of every row: coefficients times features, plus intercepts."""
    b, real, call = site.b, _real(site), site.call
    weights, intercepts = call.attr("coefficients") or (), call.attr("intercepts") or ()
    if targets < 1 or len(weights) % targets:
        site.refuse(f"{len(weights)} coefficients for {targets} targets")
    if len(intercepts) not in (0, 1, targets):
        site.refuse(f"{len(intercepts)} intercepts for {targets} targets")
    width = len(weights) // targets
    _check_width(site, width)
    table = site.table(np.array(weights, NUMPY_TYPES[real]))
    shift = numbers(site, intercepts, const(0, real)) if intercepts else None
    with b.parallel((_rows(site),), 2 * len(weights)) as (row,):
        scores = _products(site, row, table, width, targets)

        def score(k: Size) -> Expr:
            value = b.element(scores, k)
            return value if shift is None else value + shift(k)

        finish(row, score)


def _linear_regressor(site: Site) -> None:
    targets = site.call.int_attr("targets", 1)
    transform = site.call.str_attr("post_transform", "NONE")

    def finish(row: Size, score: Scores) -> None:
        store_scores(site, transform, row, targets, lambda k: cast(score(k), "f32"))

    _linear(site, targets, finish)


def _linear_classifier(site: Site) -> None:
    call, features = site.call, site.shape(0)[-1]
    labels = call.ints_attr("classlabels_ints") or ()
    transform = call.str_attr("post_transform", "NONE")
    if not isinstance(features, int) or features == 0:
        site.refuse("how many features there are is not known before it runs")
    targets = len(call.attr("coefficients") or ()) // features
    if targets == 1:
        _linear(site, 1, lambda row, score: _one_score(site, labels, transform, row, score(0)))
        return
    if targets != len(labels):
        site.refuse(f"coefficients of {targets} classes for {len(labels)} labels")

    def finish(row: Size, score: Scores) -> None:
        store_labels(site, labels, row, largest_score(site, targets, score))
        store_scores(site, transform, row, targets, lambda k: cast(score(k), "f32"), 1)

    _linear(site, targets, finish)


def _one_score(site: Site, labels: Sequence[int], transform: str, row: Size, score: Expr) -> None:
    """Its sign decides between two labels, or for and against a single one."""
    b = site.b
    value = b.let(score)
    pair = tuple(labels) if len(labels) == 2 else (0, *(labels or (1,)))
    if len(pair) != 2:
        site.refuse(f"one score for {len(labels)} labels")
    store_labels(site, pair, row, cast(value > 0, "i64"))
    single = b.let(cast(value, "f32"))
    if len(labels) != 2:
        store_scores(site, transform, row, 1, lambda k: single, 1)
        return
    scores = b.array("f32", 2)
    b.put(scores, 0, -single)
    b.put(scores, 1, single)
    store_scores(site, transform, row, 2, lambda k: b.element(scores, k), 1)


# Support vectors


def _similarity(site: Site, row: Size, table: str, vector: Size, width: int) -> Expr:
    """A row against a support vector."""
    b, real, call = site.b, _real(site), site.call
    kind = call.str_attr("kernel_type", "LINEAR")
    given = call.attr("kernel_params") or (0.0, 0.0, 0.0)
    if len(given) != 3:
        site.refuse(f"{len(given)} kernel_params where 3 are due")
    gamma, shift, degree = (float(parameter) for parameter in given)
    total = b.local(const(0, real))
    with b.loop(width, "vector") as j:
        x, v = _feature(site, row, j), b.load(table, vector * width + j)
        if kind == "RBF":
            distance = b.let(x - v)
            b.set(total, total + distance * distance)
        else:
            b.set(total, total + x * v)
    if kind == "LINEAR":
        return total
    if kind == "RBF":
        return apply("exp", -gamma * maximum(total, 0))
    if kind == "POLY":
        return apply("pow", gamma * total + shift, degree)
    if kind != "SIGMOID":
        site.refuse(f"kernel_type {kind!r} is unknown")
    return apply("tanh", gamma * total + shift)


def _svm_regressor(site: Site) -> None:
    b, call, real = site.b, site.call, _real(site)
    weights = call.attr("coefficients") or ()
    supports = call.int_attr("n_supports", 0)
    vectors = call.attr("support_vectors") or ()
    if not weights or (supports > 0 and (len(vectors) % supports or len(weights) != supports)):
        site.refuse(f"{len(vectors)} numbers of {supports} support vectors")
    width = len(vectors) // supports if supports > 0 else len(weights)
    _check_width(site, width)
    coefficients = site.table(np.array(weights, NUMPY_TYPES[real]))
    table = site.table(np.array(vectors, NUMPY_TYPES[real])) if supports > 0 else coefficients
    rho = float((call.attr("rho") or (0.0,))[0])
    transform = call.str_attr("post_transform", "NONE")
    with b.parallel((_rows(site),), 2 * len(vectors) + len(weights)) as (row,):
        total = b.local(const(rho, real))
        if supports > 0:
            with b.loop(supports) as s:
                alike = _similarity(site, row, table, s, width)
                b.set(total, total + alike * b.load(coefficients, s))
        else:
            with b.loop(width, "vector") as j:
                b.set(total, total + _feature(site, row, j) * b.load(coefficients, j))
        score = b.let(cast(total, "f32"))
        if call.int_attr("one_class", 0):
            score = b.let(where(total > 0, const(1, "f32"), -1))
        store_scores(site, transform, row, 1, lambda k: score)


def _svm_classifier(site: Site) -> None:
    """Support vectors vote on every pair of classes, or stand for one class each."""
    call = site.call
    labels = call.ints_attr("classlabels_ints") or ()
    per_class = call.ints_attr("vectors_per_class") or ()
    weights = call.attr("coefficients") or ()
    if call.attr("prob_a"):
        site.refuse("probabilities are fitted to votes by an iteration")
    if sum(per_class) == 0:
        _svm_linear(site, labels, weights)
        return
    supports, vectors = sum(per_class), call.attr("support_vectors") or ()
    pairs = len(per_class) * (len(per_class) - 1) // 2
    if not 0 < pairs <= MAX_PAIRS or len(labels) != len(per_class):
        site.refuse(f"{len(per_class)} classes vote in {pairs} pairs for {len(labels)} labels")
    complete = len(weights) == supports * (len(per_class) - 1) and len(vectors) % supports == 0
    if not complete or len(call.attr("rho") or ()) < pairs:
        site.refuse("the support vectors, coefficients or rho are not complete")
    _svm_pairs(site, labels, per_class, supports)


def _svm_linear(site: Site, labels: Sequence[int], weights: Sequence[float]) -> None:
    b, real = site.b, _real(site)
    targets, rho = len(labels), site.call.attr("rho") or ()
    if not targets or not rho or not weights or len(weights) % targets:
        site.refuse(f"{len(weights)} coefficients for {targets} labels")
    width = len(weights) // targets
    _check_width(site, width)
    table = site.table(np.array(weights, NUMPY_TYPES[real]))
    transform = site.call.str_attr("post_transform", "NONE")
    with b.parallel((_rows(site),), 2 * len(weights)) as (row,):
        scores = _products(site, row, table, width, targets)

        def score(k: Size) -> Expr:
            return b.element(scores, k) + float(rho[0])

        store_labels(site, labels, row, largest_score(site, targets, score))
        store_scores(site, transform, row, targets, lambda k: cast(score(k), "f32"), 1)


def _svm_pairs(site: Site, labels: Sequence[int], per_class: Sequence[int], supports: int) -> None:
    b, call, real = site.b, site.call, _real(site)
    vectors = np.array(call.attr("support_vectors"), NUMPY_TYPES[real])
    width = len(vectors) // supports
    _check_width(site, width)
    table = site.table(vectors)
    coefficients = site.table(np.array(call.attr("coefficients"), NUMPY_TYPES[real]))
    starts = [0, *np.cumsum(per_class).tolist()]
    rho = [float(value) for value in call.attr("rho")]
    classes, rows = len(per_class), _rows(site)
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    alike = site.scratch(real, rows * supports)
    with b.parallel((rows,), 2 * len(vectors) + len(pairs) * supports) as (row,):
        with b.loop(supports) as s:
            b.store(alike, row * supports + s, _similarity(site, row, table, s, width))
        votes, scores = b.array("i64", classes), b.array("f32", len(pairs))
        for c in range(classes):
            b.put(votes, c, const(0, "i64"))
        for number, (i, j) in enumerate(pairs):
            total = b.local(const(rho[number], real))
            for mine, other in ((i, j - 1), (j, i)):
                with b.loop(per_class[mine], "vector") as s:
                    at = starts[mine] + s
                    weight = b.load(coefficients, other * supports + at)
                    b.set(total, total + b.load(alike, row * supports + at) * weight)
            first = b.let(cast(total > 0, "i64"))
            b.put(votes, i, b.element(votes, i) + first)
            b.put(votes, j, b.element(votes, j) + (1 - first))
            b.put(scores, number, cast(total, "f32"))
        store_labels(site, labels, row, largest_score(site, classes, lambda k: b.element(votes, k)))
        _store_pairs(site, row, scores, len(pairs))


def _store_pairs(site: Site, row: Size, scores: str, pairs: int) -> None:
    """The score of each pair; of a single one, for and against."""
    b, transform = site.b, site.call.str_attr("post_transform", "NONE")
    if pairs > 1:
        store_scores(site, transform, row, pairs, lambda k: b.element(scores, k), 1)
        return
    both = b.array("f32", 2)
    b.put(both, 0, -b.element(scores, 0))
    b.put(both, 1, b.element(scores, 0))
    store_scores(site, transform, row, 2, lambda k: b.element(both, k), 1)


LINEAR_CLASSIFIER = Nest(_linear_classifier)
LINEAR_REGRESSOR = Nest(_linear_regressor)
SVM_CLASSIFIER = Nest(_svm_classifier)
SVM_REGRESSOR = Nest(_svm_regressor)
