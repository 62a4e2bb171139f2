"""Support vector machines of libsvm."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.stage import Column, Stage, stage
from sardonyx.conversion.coreml.stages.classes import by_score, class_labels, classified, largest
from sardonyx.conversion.stored.graph import Array

__all__: list[str] = []

_MOST_POWERS = 8  # that are written as products


@stage("supportVectorRegressor")
def regressor(stage: Stage) -> dict[str, Column]:
    vectors = _vectors(stage)
    alpha = np.array(stage.params.coefficients.alpha)
    if len(alpha) != len(vectors):
        raise stage.refuse(f"it has {len(alpha)} coefficients for {len(vectors)} support vectors.")
    return stage.transformed(_decisions(stage, vectors, alpha[:, None], [stage.params.rho]))


@stage("supportVectorClassifier")
def classifier(stage: Stage) -> dict[str, Column]:
    """Every pair of classes decides for one of the two; the most votes have it, the first of equals."""
    count, params = len(class_labels(stage)), stage.params
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    if len(params.rho) != len(pairs):
        raise stage.refuse(f"it has {len(params.rho)} constants for {len(pairs)} pairs of classes.")
    vectors = _vectors(stage)
    decisions = _decisions(stage, vectors, _pair_weights(stage, pairs, len(vectors)), params.rho)
    if len(params.probA) or len(params.probB):
        return _of_probabilities(stage, decisions)
    ballot = np.zeros((2 * len(pairs), count))
    for number, (i, j) in enumerate(pairs):
        ballot[number, i] = ballot[len(pairs) + number, j] = 1
    first = stage.op("Greater", decisions, stage.number(0.0))
    both = stage.op("Concat", first, stage.op("Not", first), axis=1)
    votes = stage.op("MatMul", stage.graph.cast(both, np.float64), stage.numbers("ballot", ballot))
    return classified(stage, None, largest(stage, votes))


def _of_probabilities(stage: Stage, decisions: ir.Value) -> dict[str, Column]:
    a, b = list(stage.params.probA), list(stage.params.probB)
    if len(a) != 1 or len(b) != 1:
        raise stage.refuse(
            "its probabilities of more than two classes come from an iteration of libsvm that stops early.",
            "Save it without probabilities: probability=False.",
        )
    exponent = stage.op(
        "Add", stage.op("Mul", decisions, stage.number(a[0])), stage.number(b[0])
    )  # 1 / (1 + exp(exponent)) is the first class's
    return classified(stage, *by_score(stage, exponent, stage.op("Sigmoid", exponent), 0.0))


def _pair_weights(stage: Stage, pairs: list[tuple[int, int]], total: int) -> Array:
    """(vectors, pairs): the coefficients of each pair's vectors, where libsvm keeps them."""
    counts = [int(one) for one in stage.params.numberOfSupportVectorsPerClass]
    alpha = [list(row.alpha) for row in stage.params.coefficients]
    classes = pairs[-1][1] + 1
    fits = len(counts) == classes and sum(counts) == total and min(counts) >= 0
    if not fits or len(alpha) != classes - 1 or any(len(row) != total for row in alpha):
        raise stage.refuse(
            f"{len(alpha)} rows of coefficients and vectors {counts[:8]} a class do not fit {total} support "
            f"vectors and {classes} labels."
        )
    ends = np.cumsum([0, *counts])
    weights = np.zeros((total, len(pairs)))
    for number, (i, j) in enumerate(pairs):
        for mine, other in ((i, j - 1), (j, i)):
            own = slice(ends[mine], ends[mine + 1])
            weights[own, number] = alpha[other][own]
    return weights


def _vectors(stage: Stage) -> Array:
    """(vectors, features)."""
    features = sum(stage.width(column) for column in stage.columns.values())
    params, which = stage.params, stage.params.WhichOneof("supportVectors")
    if which == "denseSupportVectors":
        rows = [list(vector.values) for vector in params.denseSupportVectors.vectors]
        if any(len(row) != features for row in rows):
            raise stage.refuse(f"a support vector does not have {features} numbers.")
        made = np.array(rows, np.float64).reshape(len(rows), features)
    else:
        sparse = params.sparseSupportVectors.vectors
        made = np.zeros((len(sparse), features))
        for row, vector in enumerate(sparse):
            for node in vector.nodes:
                if not 1 <= node.index <= features:
                    raise stage.refuse(f"a support vector has a number {node.index} of {features}.")
                made[row, node.index - 1] = node.value
    if not len(made):
        raise stage.refuse("it has no support vectors.")
    return made


def _decisions(stage: Stage, vectors: Array, weights: Array, rho: list[float]) -> ir.Value:
    """Kernels times weights, less rho: (rows, columns of weights)."""
    x = stage.features()
    product = stage.op("MatMul", x, stage.numbers("vectors", vectors.T))
    gram = _kernel(stage, x, product, vectors)
    summed = stage.op("MatMul", gram, stage.numbers("coefficients", weights))
    return stage.op("Sub", summed, stage.numbers("rho", list(rho)))


def _kernel(stage: Stage, x: ir.Value, product: ir.Value, vectors: Array) -> ir.Value:
    """What x · v becomes, (rows, vectors)."""
    kernel = stage.params.kernel
    which = kernel.WhichOneof("kernel")
    if which == "linearKernel":
        return product
    if which == "rbfKernel":
        own = stage.op("ReduceSumSquare", x, stage.graph.integers([1]), keepdims=1)
        theirs = stage.numbers("squares", (vectors**2).sum(1)[None])
        twice = stage.op("Mul", product, stage.number(2.0))
        distance = stage.op("Sub", stage.op("Add", own, theirs), twice)
        near = stage.op("Max", distance, stage.number(0.0))
        return stage.op("Exp", stage.op("Mul", near, stage.number(-kernel.rbfKernel.gamma)))
    if which not in ("polyKernel", "sigmoidKernel"):
        raise stage.refuse("it has no kernel.")
    form = getattr(kernel, which)
    scaled = stage.op("Mul", product, stage.number(form.gamma))
    shifted = stage.op("Add", scaled, stage.number(form.c))
    if which == "sigmoidKernel":
        return stage.op("Tanh", shifted)
    if not 1 <= form.degree <= _MOST_POWERS:
        return stage.op("Pow", shifted, stage.number(form.degree))
    power = shifted
    for _ in range(form.degree - 1):
        power = stage.op("Mul", power, shifted)
    return power
