"""Decision trees and forests of them. scikit-learn rounds what it is given to float32, and so is done here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import ensemble, tree
from sklearn.ensemble._iforest import _average_path_length

from sardonyx.conversion.sklearn.forest import Tree, leaves_of, sum_of_trees, tree_of
from sardonyx.conversion.sklearn.graph import Tensor, concat, stack
from sardonyx.conversion.sklearn.table import Table
from sardonyx.conversion.sklearn.writers import labelled, writes

__all__ = ["trees_of"]

_TREE_CLASSIFIERS = (tree.DecisionTreeClassifier, tree.ExtraTreeClassifier)
_TREE_REGRESSORS = (tree.DecisionTreeRegressor, tree.ExtraTreeRegressor)
_FOREST_CLASSIFIERS = (ensemble.RandomForestClassifier, ensemble.ExtraTreesClassifier)
_FOREST_REGRESSORS = (ensemble.RandomForestRegressor, ensemble.ExtraTreesRegressor)


def trees_of(members: Sequence[Any], features: Sequence[Any] | None = None) -> list[Tree]:
    """Fitted trees, with all values of a node in one row."""
    made = []
    for at, member in enumerate(members):
        fitted = member.tree_
        values = np.asarray(fitted.value, np.float64).reshape(fitted.node_count, -1)
        made.append(tree_of(fitted, values, None if features is None else features[at]))
    return made


def _mean(members: Sequence[Any], table: Table) -> Tensor:
    """Sums are divided in the end: counts of pure leaves stay whole numbers, and ties stay ties."""
    graph = table.graph
    total = sum_of_trees(table.matrix.cast(np.float32), trees_of(members), graph.number)
    return total if len(members) == 1 else total / float(len(members))


def _members(model: Any) -> Sequence[Any]:
    members: Sequence[Any] = getattr(model, "estimators_", None) or [model]
    return members


@writes("predict_proba", *_TREE_CLASSIFIERS, *_FOREST_CLASSIFIERS)
def probabilities(model: Any, table: Table) -> Any:
    whole = _mean(_members(model), table)
    if model.n_outputs_ == 1:
        return whole
    most = max(model.n_classes_)
    return [
        whole.columns(range(at * most, at * most + int(count)))
        for at, count in enumerate(model.n_classes_)
    ]


@writes("predict", *_TREE_CLASSIFIERS, *_FOREST_CLASSIFIERS)
def classify(model: Any, table: Table) -> Tensor:
    shares = probabilities(model, table)
    if model.n_outputs_ == 1:
        return labelled(model, model.classes_, shares.argmax(1))
    pairs = zip(model.classes_, shares, strict=True)
    return stack([labelled(model, classes, share.argmax(1)) for classes, share in pairs])


@writes("predict", *_TREE_REGRESSORS, *_FOREST_REGRESSORS)
def regress(model: Any, table: Table) -> Tensor:
    answer = _mean(_members(model), table)
    return answer.squeeze(1) if model.n_outputs_ == 1 else answer


@writes("transform", ensemble.RandomTreesEmbedding)
def embed(model: Any, table: Table) -> Tensor:
    """A column for every leaf of every tree, in the order of the nodes' numbers."""
    trees = trees_of(model.estimators_)
    leaves = leaves_of(table.matrix.cast(np.float32), trees)
    parts, start = [], 0
    for at, member in enumerate(trees):
        count = len(member.leaves)
        wanted = np.arange(start, start + count).reshape(1, -1)
        parts.append(leaves.columns([at]).equals(wanted).cast(table.graph.number))
        start += count
    return concat(parts).columns(_kept(model, trees))


def _kept(model: Any, trees: Sequence[Tree]) -> list[int]:
    """Leaves that the encoder has seen: those of the training rows."""
    found: list[int] = []
    start = 0
    for at, member in enumerate(trees):
        place = {int(node): index for index, node in enumerate(member.leaves)}
        found += [start + place[int(node)] for node in model.one_hot_encoder_.categories_[at]]
        start += len(member.leaves)
    return found


@writes("score_samples", ensemble.IsolationForest)
def isolation_scores(model: Any, table: Table) -> Tensor:
    return _scores(model, _depths(model, table)).cast(table.graph.number)


@writes("decision_function", ensemble.IsolationForest)
def isolation_decision(model: Any, table: Table) -> Tensor:
    found = _scores(model, _depths(model, table)) - float(model.offset_)
    return found.cast(table.graph.number)


@writes("predict", ensemble.IsolationForest)
def isolated(model: Any, table: Table) -> Tensor:
    """By the depth: training rows may lie exactly at the limit, where a rounded score falls to either side."""
    inside = (_depths(model, table) >= _least_depth(model)).cast(np.int64)
    return inside * 2 - 1


def _depths(model: Any, table: Table) -> Tensor:
    """How deep a row falls, summed over the trees, in float64."""
    trees = []
    for at, member in enumerate(model.estimators_):
        lengths = model._decision_path_lengths[at] + model._average_path_length_per_tree[at] - 1.0
        trees.append(tree_of(member.tree_, lengths.reshape(-1, 1), model.estimators_features_[at]))
    return sum_of_trees(table.matrix.cast(np.float32), trees, np.float64).squeeze(1)


def _scale(model: Any) -> float:
    return len(model.estimators_) * float(_average_path_length([model._max_samples])[0])


def _scores(model: Any, depths: Tensor) -> Tensor:
    scale = _scale(model)
    share = depths * (-np.log(2.0) / scale) if scale else depths * 0.0 - np.log(2.0)
    return -(share.exp())


def _least_depth(model: Any) -> float:
    """The least depth whose score is not below the offset, a little lowered for the order of summing."""
    scale = _scale(model)
    low, high = 0.0, 1.0
    while -(2.0 ** (-high / scale if scale else -1.0)) < model.offset_ and high < 1e9:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if -(2.0 ** (-middle / scale if scale else -1.0)) < model.offset_:
            low = middle
        else:
            high = middle
    return high * (1.0 - 1e-13)
