"""Gradient boosting: trees whose sum goes through the loss's link.

HistGradientBoosting compares float64, and has splits by category. It puts the categories in front and numbers them
by a column transformer of its own; a split asks whether the number is in a set. For every set there is a column
here that says which way to go, looked up by the category, and the split compares that with 0.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import ensemble

from sardonyx.conversion.sklearn.estimators.elementary import both, sigmoid
from sardonyx.conversion.sklearn.estimators.trees import trees_of
from sardonyx.conversion.sklearn.forest import Tree, sum_of_trees
from sardonyx.conversion.sklearn.graph import Tensor, concat
from sardonyx.conversion.sklearn.table import Table, table_of
from sardonyx.conversion.sklearn.writers import labelled, predict, refuse, scores, transform, writes

__all__: list[str] = []


# GradientBoosting


def _raw(model: Any, table: Table) -> Tensor:
    rounded = table.matrix.cast(np.float32)
    outputs = model.estimators_.shape[1]
    trees = []
    for stage in model.estimators_:
        for at, tree in enumerate(trees_of(list(stage))):
            values = np.zeros((len(tree.left), outputs))
            values[:, at] = tree.values[:, 0] * model.learning_rate
            trees.append(
                Tree(tree.feature, tree.threshold, tree.left, tree.right, tree.missing_left, values)
            )
    total = sum_of_trees(rounded, trees, table.graph.number)
    if isinstance(model.init_, str) and model.init_ == "zero":
        return total
    return total + _beginning(model, table_of(rounded.cast(table.graph.number), table.names))


def _beginning(model: Any, table: Table) -> Tensor:
    """What the first estimator says, through the link."""
    if not hasattr(model, "classes_"):
        return predict(model.init_, table).reshape(None, 1)
    shares = scores("predict_proba", model.init_, table)
    tiny = float(np.finfo(np.float64).eps)
    if shares.width == 2:
        second = shares.columns([1]).clip(tiny, 1.0 - tiny)
        if getattr(model, "loss", "") == "exponential":
            return (second / (1.0 - second)).log() * 0.5
        return (second / (1.0 - second)).log()
    logs = shares.clip(tiny, 1.0 - tiny).log()
    return logs - logs.sum(1, keep=True) / float(shares.width)


@writes("decision_function", ensemble.GradientBoostingClassifier)
def boosted_decision(model: Any, table: Table) -> Tensor:
    raw = _raw(model, table)
    return raw.squeeze(1) if raw.width == 1 else raw


@writes("predict", ensemble.GradientBoostingClassifier)
def boosted_class(model: Any, table: Table) -> Tensor:
    raw = _raw(model, table)
    index = (raw.squeeze(1) >= 0.0).cast(np.int64) if raw.width == 1 else raw.argmax(1)
    return labelled(model, model.classes_, index)


@writes("predict_proba", ensemble.GradientBoostingClassifier)
def boosted_proba(model: Any, table: Table) -> Tensor:
    raw = _raw(model, table)
    if raw.width > 1:
        return raw.softmax()
    return both(sigmoid(raw.squeeze(1) * (2.0 if model.loss == "exponential" else 1.0)))


@writes("predict", ensemble.GradientBoostingRegressor)
def boosted_value(model: Any, table: Table) -> Tensor:
    return _raw(model, table).squeeze(1)


# HistGradientBoosting


def _hist_raw(model: Any, table: Table) -> Tensor:
    number = table.graph.number
    if model._preprocessor is not None:
        table = _preprocessed(model, table)
    x = table.matrix
    trees, sets = _read_predictors(model)
    if sets:
        x = concat([x, *(_ways(model, x.columns([feature]), bits) for feature, bits in sets)])
    return sum_of_trees(x, trees, number) + np.asarray(model._baseline_prediction).reshape(1, -1)


def _preprocessed(model: Any, table: Table) -> Table:
    encoder = model._preprocessor.named_transformers_["encoder"]
    chosen = np.flatnonzero(model.is_categorical_)
    others = np.flatnonzero(~model.is_categorical_)
    codes = transform(encoder, table.select(chosen.tolist())).matrix
    if not len(others):
        return table_of(codes)
    return table_of(concat([codes, table.select(others.tolist()).matrix]))


def _read_predictors(model: Any) -> tuple[list[Tree], list[tuple[int, NDArray[np.bool_]]]]:
    """The trees, and the sets of categories that their splits ask for: (feature, way of every category)."""
    known_bits, places = model._bin_mapper.make_known_categories_bitsets()
    columns = model.n_features_in_
    sets: list[tuple[int, NDArray[np.bool_]]] = []
    numbers: dict[tuple[int, bytes], int] = {}
    trees = []
    outputs = model.n_trees_per_iteration_
    for stage in model._predictors:
        for at, predictor in enumerate(stage):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            feature = nodes["feature_idx"].astype(np.int64)
            threshold = nodes["num_threshold"].astype(np.float64)
            missing = nodes["missing_go_to_left"].astype(bool)
            for split in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf):
                goes_left = _bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][split]])
                known = _bits(known_bits[places[feature[split]]])
                # Ways: right is 1, so that `<= 0.5` is left; what is not known goes as the missing.
                left = np.append(np.where(known, goes_left, missing[split]), missing[split])
                left[:-1] |= goes_left
                key = (int(feature[split]), left.tobytes())
                if key not in numbers:
                    numbers[key] = columns + len(sets)
                    sets.append((int(feature[split]), left))
                feature[split], threshold[split] = numbers[key], 0.5
            values = np.zeros((len(nodes), outputs))
            values[:, at] = np.where(leaf, nodes["value"], 0.0)
            left_child = np.where(leaf, -1, nodes["left"].astype(np.int64))
            right_child = np.where(leaf, -1, nodes["right"].astype(np.int64))
            trees.append(Tree(feature, threshold, left_child, right_child, missing, values))
    return trees, sets


def _bits(words: Any) -> NDArray[np.bool_]:
    """256 truths from eight words of 32 bits."""
    return np.unpackbits(np.asarray(words, "<u4").view(np.uint8), bitorder="little").astype(bool)


def _ways(model: Any, codes: Tensor, left: NDArray[np.bool_]) -> Tensor:
    """0 where the category goes left, 1 where right; the last place is for what is missing."""
    known = (codes >= 0.0) & (codes < 256.0)
    place = known.where(codes, 256.0).cast(np.int64).squeeze(1)
    return codes.graph.constant(np.where(left, 0.0, 1.0), codes.dtype).take(place).expand(1)


@writes("decision_function", ensemble.HistGradientBoostingClassifier)
def hist_decision(model: Any, table: Table) -> Tensor:
    raw = _hist_raw(model, table)
    return raw.squeeze(1) if raw.width == 1 else raw


@writes("predict", ensemble.HistGradientBoostingClassifier)
def hist_class(model: Any, table: Table) -> Tensor:
    raw = _hist_raw(model, table)
    index = (raw.squeeze(1) > 0.0).cast(np.int64) if raw.width == 1 else raw.argmax(1)
    return labelled(model, model.classes_, index)


@writes("predict_proba", ensemble.HistGradientBoostingClassifier)
def hist_proba(model: Any, table: Table) -> Tensor:
    raw = _hist_raw(model, table)
    return both(sigmoid(raw.squeeze(1))) if raw.width == 1 else raw.softmax()


@writes("predict", ensemble.HistGradientBoostingRegressor)
def hist_value(model: Any, table: Table) -> Tensor:
    raw = _hist_raw(model, table).squeeze(1)
    link = type(model._loss.link).__name__
    if link == "IdentityLink":
        return raw
    if link == "LogLink":
        return raw.exp()
    raise refuse(model, f"its link {link} is not known")
