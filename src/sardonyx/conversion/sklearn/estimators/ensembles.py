"""Estimators made of several: bagging, voting, stacking and AdaBoost."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import ensemble

from sardonyx.conversion.sklearn.graph import Tensor, concat, stack
from sardonyx.conversion.sklearn.table import Part, Table
from sardonyx.conversion.sklearn.writers import labelled, predict, refuse, scores, write, writes

__all__: list[str] = []


# Bagging


@writes("predict_proba", ensemble.BaggingClassifier)
def bagged_proba(model: Any, table: Table) -> Tensor:
    number, count = table.graph.number, int(model.n_classes_)
    total = None
    for member, features in zip(model.estimators_, model.estimators_features_, strict=True):
        seen = table.select([int(place) for place in features])
        if hasattr(member, "predict_proba"):
            share = scores("predict_proba", member, seen)
            if share.width != count:
                spread = np.zeros((share.width, count))
                spread[np.arange(share.width), member.classes_] = 1.0
                share = share @ spread
        else:
            votes = predict(member, seen).expand(1)
            share = votes.equals(np.arange(count).reshape(1, -1)).cast(number)
        total = share if total is None else total + share
    assert total is not None
    return total / float(len(model.estimators_))


@writes("predict", ensemble.BaggingClassifier)
def bagged_class(model: Any, table: Table) -> Tensor:
    return labelled(model, model.classes_, bagged_proba(model, table).argmax(1))


@writes("decision_function", ensemble.BaggingClassifier)
def bagged_decision(model: Any, table: Table) -> Tensor:
    pairs = zip(model.estimators_, model.estimators_features_, strict=True)
    found = [
        scores("decision_function", member, table.select([int(place) for place in features]))
        for member, features in pairs
    ]
    return _sum(found) / float(len(found))


@writes("predict", ensemble.BaggingRegressor)
def bagged_value(model: Any, table: Table) -> Tensor:
    pairs = zip(model.estimators_, model.estimators_features_, strict=True)
    found = [
        predict(member, table.select([int(place) for place in features]))
        for member, features in pairs
    ]
    return _sum(found) / float(len(found))


def _sum(tensors: list[Tensor]) -> Tensor:
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total


# Voting


def _weights(model: Any) -> Any:
    weights = model._weights_not_none
    return np.ones(len(model.estimators_)) if weights is None else np.asarray(weights, np.float64)


@writes("predict_proba", ensemble.VotingClassifier)
def voted_proba(model: Any, table: Table) -> Tensor:
    weights = _weights(model)
    pairs = zip(model.estimators_, weights, strict=True)
    found = [scores("predict_proba", member, table) * float(weight) for member, weight in pairs]
    return _sum(found) / float(weights.sum())


@writes("predict", ensemble.VotingClassifier)
def voted_class(model: Any, table: Table) -> Tensor:
    if model.voting == "soft":
        return labelled(model, model.classes_, voted_proba(model, table).argmax(1))
    classes = np.arange(len(model.classes_)).reshape(1, -1)
    number = table.graph.number
    pairs = zip(model.estimators_, _weights(model), strict=True)
    votes = [
        predict(member, table).expand(1).equals(classes).cast(number) * float(weight)
        for member, weight in pairs
    ]
    return labelled(model, model.classes_, _sum(votes).argmax(1))


@writes("transform", ensemble.VotingClassifier)
def votes_of(model: Any, table: Table) -> Tensor:
    if model.voting == "hard":
        return stack([predict(member, table) for member in model.estimators_])
    if not model.flatten_transform:
        raise refuse(model, "its transform has three axes", "Set flatten_transform=True.")
    return concat([scores("predict_proba", member, table) for member in model.estimators_])


@writes("transform", ensemble.VotingRegressor)
def voters_of(model: Any, table: Table) -> Tensor:
    return stack([predict(member, table) for member in model.estimators_])


@writes("predict", ensemble.VotingRegressor)
def voted_value(model: Any, table: Table) -> Tensor:
    weights = _weights(model)
    pairs = zip(model.estimators_, weights, strict=True)
    found = [predict(member, table) * float(weight) for member, weight in pairs]
    return _sum(found) / float(weights.sum())


# Stacking


@writes("transform", ensemble.StackingClassifier, ensemble.StackingRegressor)
def stacked(model: Any, table: Table) -> Table:
    """What the first layer says; of two classes, only the second's probability."""
    number = table.graph.number
    parts: list[Part] = []
    methods = [method for method in model.stack_method_ if method is not None]
    for member, method in zip(model.estimators_, methods, strict=True):
        answer = write(method, member, table)
        if isinstance(answer, list):
            parts += [Part(each.columns(range(1, each.width))) for each in answer]
        elif len(answer.shape) == 1:
            parts.append(Part(answer.expand(1).cast(number)))
        elif method == "predict_proba" and len(model.classes_) == 2:
            parts.append(Part(answer.columns(range(1, answer.width))))
        else:
            parts.append(Part(answer.cast(number)))
    return Table((*parts, *table.parts)) if model.passthrough else Table(tuple(parts))


@writes("predict", ensemble.StackingRegressor)
def stacked_value(model: Any, table: Table) -> Tensor:
    return predict(model.final_estimator_, stacked(model, table))


@writes("predict", ensemble.StackingClassifier)
def stacked_class(model: Any, table: Table) -> Tensor:
    if isinstance(model._label_encoder, list):
        raise refuse(model, "it stacks several labels at once")
    index = predict(model.final_estimator_, stacked(model, table))
    return labelled(model, model._label_encoder.classes_, index)


@writes("predict_proba", ensemble.StackingClassifier)
def stacked_proba(model: Any, table: Table) -> Tensor:
    return scores("predict_proba", model.final_estimator_, stacked(model, table))


@writes("decision_function", ensemble.StackingClassifier)
def stacked_decision(model: Any, table: Table) -> Tensor:
    return scores("decision_function", model.final_estimator_, stacked(model, table))


# AdaBoost


@writes("decision_function", ensemble.AdaBoostClassifier)
def adaptive_decision(model: Any, table: Table) -> Tensor:
    raw = _adaptive(model, table)
    return (raw.columns([1]) - raw.columns([0])).squeeze(1) if raw.width == 2 else raw


def _adaptive(model: Any, table: Table) -> Tensor:
    """Every member gives its weight to its class, and takes a share of it from all others."""
    count = len(model.classes_)
    if count == 1:
        raise refuse(model, "it has one class only")
    pairs = zip(model.estimators_, model.estimator_weights_, strict=False)
    found = []
    for member, weight in pairs:
        index = _index(model, predict(member, table))
        found.append(index.where(float(weight), -float(weight) / (count - 1)))
    return _sum(found) / float(model.estimator_weights_.sum())


def _index(model: Any, labels: Tensor) -> Tensor:
    """[batch] labels → [batch, classes] truths."""
    graph = labels.graph
    if labels.dtype.kind == "b":
        labels = labels.cast(np.int64)
        classes = graph.constant(model.classes_.reshape(1, -1), np.int64)
    elif labels.dtype.kind in "iu":
        classes = graph.constant(model.classes_.reshape(1, -1), np.int64)
    else:
        classes = graph.constant(np.asarray(model.classes_).reshape(1, -1), labels.dtype)
    return labels.expand(1).equals(classes)


@writes("predict", ensemble.AdaBoostClassifier)
def adaptive_class(model: Any, table: Table) -> Tensor:
    decision = adaptive_decision(model, table)
    index = (decision > 0.0).cast(np.int64) if len(decision.shape) == 1 else decision.argmax(1)
    return labelled(model, model.classes_, index)


@writes("predict_proba", ensemble.AdaBoostClassifier)
def adaptive_proba(model: Any, table: Table) -> Tensor:
    decision = adaptive_decision(model, table)
    if len(decision.shape) == 1:
        return (stack([-decision, decision]) / 2.0).softmax()
    return (decision / float(decision.width - 1)).softmax()


@writes("predict", ensemble.AdaBoostRegressor)
def adaptive_value(model: Any, table: Table) -> Tensor:
    """The weighted median of the members: the first, in order of size, that half of the weight is at or below."""
    graph = table.graph
    members = model.estimators_
    found = stack([predict(member, table) for member in members])
    count = graph.constant([len(members)], np.int64)
    names = graph.node("TopK", [found, count], outputs=2, axis=1, largest=0, sorted=1)
    ordered = Tensor(graph, names[0], found.dtype, found.shape)
    order = Tensor(graph, names[1], np.dtype(np.int64), found.shape)
    weights = np.asarray(model.estimator_weights_[: len(members)], np.float64)
    taken = graph.constant(weights).take(order.reshape(None)).reshape(None, len(members))
    axis = graph.constant(1, np.int64)
    below = graph.op("CumSum", taken, axis, dtype=np.float64, shape=found.shape)
    enough = below >= below.columns([len(members) - 1]) * 0.5
    place = enough.cast(np.int64).argmax(1).expand(1)
    return graph.op(
        "GatherElements", ordered, place, dtype=found.dtype, shape=(None, 1), axis=1
    ).squeeze(1)
