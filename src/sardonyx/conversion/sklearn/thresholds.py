"""The numbers at which an estimator's answer jumps, by input column: splits of its trees and edges of its bins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["thresholds_of"]

# Where an estimator keeps others that are given the same columns.
_INNER = ("best_estimator_", "estimator_", "estimator", "regressor_")


def thresholds_of(model: Any, *, most: int = 40) -> dict[int, NDArray[np.float64]]:
    """Some thresholds of every column that has any; none of what stands behind a transformer."""
    found: dict[int, list[float]] = {}
    for column, value in _walk(model):
        if np.isfinite(value):
            found.setdefault(column, []).append(value)
    generator = np.random.default_rng(0)
    chosen = {}
    for column, values in found.items():
        distinct = np.unique(values)
        chosen[column] = generator.choice(distinct, min(most, len(distinct)), replace=False)
    return chosen


def _walk(model: Any) -> Iterator[tuple[int, float]]:
    if hasattr(model, "tree_") and hasattr(model.tree_, "children_left"):
        yield from _of_tree(model.tree_)
    elif hasattr(model, "_predictors"):
        yield from _of_hist(model)
    elif hasattr(model, "bin_edges_"):
        for column, edges in enumerate(model.bin_edges_):
            yield from ((column, float(edge)) for edge in edges)
    elif hasattr(model, "steps"):
        yield from _walk(model.steps[0][1])
    elif hasattr(model, "estimators_"):
        members = list(np.ravel(np.asarray(model.estimators_, dtype=object)))[:50]
        features = getattr(model, "estimators_features_", [None] * len(members))
        for member, columns in zip(members, features, strict=False):
            for column, value in _walk(member):
                yield (column if columns is None else int(columns[column])), value
    else:
        for name in _INNER:
            if getattr(model, name, None) is not None:
                yield from _walk(getattr(model, name))
                return


def _of_tree(tree: Any) -> Iterator[tuple[int, float]]:
    inner = np.flatnonzero(tree.children_left >= 0)
    for node in inner[:200]:
        yield int(tree.feature[node]), float(tree.threshold[node])


def _of_hist(model: Any) -> Iterator[tuple[int, float]]:
    order = np.arange(model.n_features_in_)
    if model._preprocessor is not None:  # categories stand in front there
        chosen = np.asarray(model.is_categorical_)
        order = np.concatenate([np.flatnonzero(chosen), np.flatnonzero(~chosen)])
    for stage in model._predictors[:20]:
        for predictor in stage:
            nodes = predictor.nodes
            inner = ~nodes["is_leaf"].astype(bool) & ~nodes["is_categorical"].astype(bool)
            for node in np.flatnonzero(inner):
                yield int(order[nodes["feature_idx"][node]]), float(nodes["num_threshold"][node])
