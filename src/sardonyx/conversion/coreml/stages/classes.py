"""What classifiers give: a label, and the probability of every label."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.stage import Column, Key, Stage

__all__ = ["against_first", "by_score", "class_labels", "classified", "largest"]


def class_labels(stage: Stage) -> tuple[Key, ...]:
    """The labels of a classifier.

    Raises:
        ConvertError: there are fewer than two, or two that are equal.
    """
    which = stage.params.WhichOneof("ClassLabels")
    found: tuple[Key, ...] = tuple(getattr(stage.params, which).vector) if which else ()
    if len(found) < 2 or len(set(found)) != len(found):
        raise stage.refuse(f"it has {len(found)} labels: {', '.join(map(str, found))[:80]}.")
    return found


def largest(stage: Stage, scores: ir.Value) -> ir.Value:
    """The number of the largest of the scores of each row, the first of equals."""
    return stage.op("ArgMax", scores, axis=1, keepdims=0)


def against_first(stage: Stage, scores: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Probabilities and which: of a first class whose score is 0, and of those that have scores."""
    all_scores = stage.op("Pad", scores, stage.graph.integers([0, 1, 0, 0]))
    return stage.op("Softmax", all_scores, axis=1), largest(stage, all_scores)


def by_score(
    stage: Stage, score: ir.Value, second: ir.Value, boundary: float
) -> tuple[ir.Value, ir.Value]:
    """Of two classes, (rows, 2) and which: the second one where its score reaches the boundary."""
    graph = stage.graph
    one = graph.constant(1.0, like=second)
    both = stage.op("Concat", stage.op("Sub", one, second), second, axis=1)
    reached = stage.op("GreaterOrEqual", score, graph.constant(boundary, like=score))
    return both, stage.flat(graph.cast(reached, np.int64))


def classified(stage: Stage, probabilities: ir.Value | None, chosen: ir.Value) -> dict[str, Column]:
    """Both answers under their names; None are probabilities that the model does not know.

    Raises:
        ConvertError: the description asks for what is not known.
    """
    labels, description = class_labels(stage), stage.description
    label = description.predictedFeatureName
    if not label:
        raise stage.refuse("its description does not name the predicted feature.")
    made = {label: Column(_label(stage, labels, chosen))}
    name = description.predictedProbabilitiesName
    if name and probabilities is None:
        raise stage.refuse(f"it asks for the probabilities {name[:80]!r}, which it cannot compute.")
    if name and probabilities is not None:
        made[name] = Column(probabilities, labels)
    return made


def _label(stage: Stage, labels: tuple[Key, ...], chosen: ir.Value) -> ir.Value:
    if labels == tuple(range(len(labels))):
        return chosen
    texts = isinstance(labels[0], str)
    values = {"values_strings" if texts else "values_int64s": list(labels)}
    return stage.ml("LabelEncoder", chosen, keys_int64s=list(range(len(labels))), **values)
