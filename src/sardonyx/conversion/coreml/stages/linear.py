"""Generalized linear models."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.stage import Column, Stage, stage
from sardonyx.conversion.coreml.stages.classes import (
    against_first,
    by_score,
    class_labels,
    classified,
    largest,
)

__all__: list[str] = []

_NONE, _LOGIT, _PROBIT = range(3)  # of a regressor; a classifier's begin with logit
_REFERENCE = 0  # the encoding in which the first class has the score 0


@stage("glmRegressor")
def regressor(stage: Stage) -> dict[str, Column]:
    scores, transform = _scores(stage), stage.params.postEvaluationTransform
    return stage.transformed(_link(stage, scores, transform))


@stage("glmClassifier")
def classifier(stage: Stage) -> dict[str, Column]:
    labels, scores = class_labels(stage), _scores(stage)
    width, transform = stage.width(Column(scores)), stage.params.postEvaluationTransform + 1
    reference = stage.params.classEncoding == _REFERENCE
    if width == 1 and len(labels) == 2:
        second = _link(stage, scores, transform)
        return classified(stage, *by_score(stage, scores, second, 0.0))
    if transform != _LOGIT:
        raise stage.refuse("probit is for two classes and one row of weights.")
    if reference and width == len(labels) - 1:
        return classified(stage, *against_first(stage, scores))
    if not reference and width == len(labels):
        apart = stage.op("Sigmoid", scores)
        total = stage.op("ReduceSum", apart, stage.graph.integers([1]), keepdims=1)
        return classified(stage, stage.op("Div", apart, total), largest(stage, scores))
    raise stage.refuse(f"it has {width} rows of weights for {len(labels)} labels.")


def _scores(stage: Stage) -> ir.Value:
    """Weights times features, and the offsets: (rows, scores)."""
    x = stage.features()
    features = stage.width(Column(x))
    rows = [list(row.value) for row in stage.params.weights]
    offset = list(stage.params.offset)
    if not rows or len(offset) != len(rows) or any(len(row) != features for row in rows):
        raise stage.refuse(
            f"it has {len(offset)} offsets and {len(rows)} rows of {[len(row) for row in rows[:4]]} weights "
            f"for {features} features."
        )
    product = stage.op("MatMul", x, stage.numbers("weights", np.array(rows).T))
    return stage.op("Add", product, stage.numbers("offset", offset))


def _link(stage: Stage, scores: ir.Value, transform: int) -> ir.Value:
    if transform == _NONE:
        return scores
    if transform == _LOGIT:
        return stage.op("Sigmoid", scores)
    if transform != _PROBIT:
        raise stage.refuse(f"the transform {transform} is not known.")
    scaled = stage.op("Mul", scores, stage.number(0.5**0.5))
    scaled = stage.op("Erf", stage.graph.cast(scaled, np.float32))
    half = stage.graph.constant(0.5)
    return stage.op("Add", stage.op("Mul", scaled, half), half)
