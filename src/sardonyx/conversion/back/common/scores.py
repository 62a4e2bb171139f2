"""Linear models of ai.onnx.ml, and how its classifiers and regressors turn raw scores into answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.back.language import Answer, Entry
from sardonyx.conversion.back.step import Step
from sardonyx.conversion.back.support.classical import inverse_normal, shares_of_votes

__all__ = ["ENTRIES", "binary", "features", "largest", "transformed", "type_of_sums"]

_NARROW = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def type_of_sums(step: Step) -> ir.DataType:
    """Doubles where float32 does not hold the features."""
    return ir.DataType.FLOAT if step.dtype(0) in _NARROW else ir.DataType.DOUBLE


def features(step: Step, real: ir.DataType) -> str:
    """Rows of features in this type; a vector counts as one row."""
    x = step[0] if step.dtype(0) == real else step.cast(step[0], real)
    return f"{x}[None]" if step.rank(0) == 1 else x


def transformed(step: Step, scores: str, transform: str) -> str:
    """A matrix of scores after `post_transform`."""
    if transform in ("NONE", ""):
        return scores
    if transform == "LOGISTIC":
        return step.say("Sigmoid", scores)
    if transform == "SOFTMAX":
        return step.say("softmax", scores, -1)
    if transform == "SOFTMAX_ZERO":
        scores = step.let("scores", scores)
        return f"{step.use(shares_of_votes)}({scores}, {step.say('amax', scores, '(-1,)', True)})"
    if transform != "PROBIT":
        step.refuse(f"post_transform is {transform[:40]!r}")
    return f"{step.use(inverse_normal)}({scores})"


def labelled(step: Step, labels: Sequence[int], chosen: str) -> str:
    """The label of the class with this number."""
    if tuple(labels) == tuple(range(len(labels))):
        return chosen
    table = step.table(np.array(labels, np.int64), "labels")
    return f"{step.help('take')}({table}, {chosen}, 0)"


def largest(step: Step, labels: Sequence[int], scores: str) -> str:
    """The label of the largest score, the first of equals."""
    chosen = step.cast(step.say("argmax", scores, 1, False), ir.DataType.INT64)
    return labelled(step, labels, chosen)


def binary(
    step: Step, labels: Sequence[int], above: str, second: str, transform: str, *, one: bool
) -> list[str]:
    """The second of two labels where `above` says so, and the scores of both, of a column with the second one's.

    A single label stands against 0, and its score is the only one.
    """
    pair = labels if len(labels) == 2 else (0, *labels)
    scores = second
    if len(labels) == 2:
        first = f"1 - {second}" if one else f"-{second}"
        scores = step.say("concat", f"{first}, {second}", 1)
    chosen = step.cast(f"({above})", ir.DataType.INT64)
    return [labelled(step, pair, chosen), transformed(step, scores, transform)]


# Linear models


def _linear(step: Step, targets: int) -> str:
    """Coefficients times features, plus intercepts, (rows, targets) of float32."""
    weights = step.call.attr("coefficients") or ()
    shift = step.call.attr("intercepts") or ()
    if targets < 1 or not weights or len(weights) % targets or len(shift) not in (0, 1, targets):
        step.refuse(
            f"{len(weights)} coefficients and {len(shift)} intercepts for {targets} targets"
        )
    real = type_of_sums(step)
    kind = real.numpy()
    table = np.array(weights, kind).reshape(targets, -1).T
    coefficients = step.table(table, "coefficients", trained=True)
    text = step.say("matmul", features(step, real), coefficients)
    if shift:
        text = f"{text} + {step.table(np.array(shift, kind), 'intercepts', trained=True)}"
    return text if real == ir.DataType.FLOAT else step.cast(f"({text})", ir.DataType.FLOAT)


def _linear_regressor(step: Step) -> Answer:
    transform = step.call.str_attr("post_transform", "NONE")
    return transformed(step, _linear(step, step.call.int_attr("targets", 1)), transform)


def _linear_classifier(step: Step) -> Answer:
    labels = step.call.ints_attr("classlabels_ints") or ()
    transform = step.call.str_attr("post_transform", "NONE")
    width = step.shape(0)[-1]
    if not isinstance(width, int) or width < 1:
        step.refuse("how many features there are is not known before a run")
    targets = len(step.call.attr("coefficients") or ()) // width
    scores = step.let("scores", _linear(step, targets))
    if targets == 1 and len(labels) <= 2:
        above = f"{scores}[:, 0] > 0"
        return binary(step, labels or (1,), above, scores, transform, one=False)
    if targets != len(labels):
        step.refuse(f"coefficients of {targets} classes for {len(labels)} labels")
    return [largest(step, labels, scores), transformed(step, scores, transform)]


ENTRIES: Mapping[str, Entry] = {
    "LinearRegressor": _linear_regressor,
    "LinearClassifier": _linear_classifier,
}
