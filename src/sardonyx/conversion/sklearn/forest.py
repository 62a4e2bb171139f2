"""Decision trees as one operator.

    x [batch, features] ─ TreeEnsembleRegressor ─ [batch, outputs]                         float32
    x ─ TreeEnsembleRegressor ─ leaf of every tree ─ Gather values ─ ReduceSum             float64

The operator gives float32 whatever it is fed. For float64 it therefore says only which leaf a row falls into, and
the leaves' values are looked up and summed in float64.

A split `x <= t` compares a float32 with a float64 in scikit-learn. The largest float32 that is not above t divides
all float32 numbers as t does, so no row changes side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import numpy_helper

from sardonyx.conversion.sklearn.graph import ML, Tensor

__all__ = ["Tree", "leaves_of", "round_down", "sum_of_trees", "tree_of"]

_LEAF = -1


@dataclass(frozen=True)
class Tree:
    """Nodes by number, the root first; `left` is the child for x[feature] <= threshold, -1 at a leaf."""

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    values: NDArray[np.float64]  # [node, output]

    @property
    def leaves(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.left == _LEAF)


def tree_of(fitted: Any, values: NDArray[np.float64], features: Any = None) -> Tree:
    """A tree of scikit-learn (`tree_`) with these values at its nodes.

    Args:
        features: which columns the tree was given, where not all.
    """
    feature = fitted.feature.astype(np.int64)
    if features is not None:
        feature = np.where(feature >= 0, np.asarray(features, np.int64)[feature], feature)
    return Tree(
        feature,
        fitted.threshold.astype(np.float64),
        fitted.children_left.astype(np.int64),
        fitted.children_right.astype(np.int64),
        np.asarray(fitted.missing_go_to_left, np.bool_),
        values,
    )


def round_down(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above each number."""
    with np.errstate(over="ignore"):
        near = numbers.astype(np.float32)
        below = np.nextafter(near, np.float32(-np.inf))
    return np.where(near > numbers, below, near)


def sum_of_trees(x: Tensor, trees: Sequence[Tree], dtype: Any) -> Tensor:
    """The sum of the trees' values, [batch, outputs], in this type.

    Args:
        x: float32, or float64 where the trees compare in that.
    """
    width = trees[0].values.shape[1]
    grown = [tree for tree in trees if len(tree.left) > 1]
    stumps = [tree.values[0] for tree in trees if len(tree.left) == 1]
    base = np.sum(stumps, axis=0) if stumps else np.zeros(width)
    if not grown:
        return x.repeated(x.graph.constant(base, dtype))
    if np.dtype(dtype) == np.float64 or x.dtype == np.float64:
        leaves = leaves_of(x, grown)
        table = np.concatenate([tree.values[tree.leaves] for tree in grown])
        total = x.graph.constant(table, np.float64).take(leaves).sum(1)
    else:
        total = _operator(x, grown, width)
    total = total.cast(dtype)
    return total + base.reshape(1, -1) if base.any() else total


def leaves_of(x: Tensor, trees: Sequence[Tree]) -> Tensor:
    """Which leaf of all leaves, counted through the trees: [batch, trees], whole numbers."""
    numbered, starts, start = [], [], 0
    for at, tree in enumerate(trees):
        values = np.zeros((len(tree.left), len(trees)))
        values[tree.leaves, at] = np.arange(len(tree.leaves))
        numbered.append(
            Tree(tree.feature, tree.threshold, tree.left, tree.right, tree.missing_left, values)
        )
        starts.append(start)
        start += len(tree.leaves)
    return _operator(x, numbered, len(trees)).cast(np.int64) + np.array(starts)


def _operator(x: Tensor, trees: Sequence[Tree], width: int) -> Tensor:
    """One TreeEnsembleRegressor; its result is float32."""
    ids = np.concatenate([np.arange(len(tree.left)) for tree in trees])
    owners = np.concatenate([np.full(len(tree.left), at) for at, tree in enumerate(trees)])
    left = np.concatenate([tree.left for tree in trees])
    leaf = left == _LEAF
    thresholds = np.where(leaf, 0.0, np.concatenate([tree.threshold for tree in trees]))
    weights = np.concatenate([tree.values for tree in trees])
    at_leaf, at_output = np.nonzero((weights != 0.0) & leaf[:, None])
    bare = np.flatnonzero(leaf & ~np.any(weights != 0.0, axis=1))  # a leaf must have a weight
    at_leaf = np.concatenate([at_leaf, bare])
    at_output = np.concatenate([at_output, np.zeros(len(bare), np.int64)])
    numbers: dict[str, Any] = {}
    if x.dtype == np.float64:
        numbers["nodes_values_as_tensor"] = numpy_helper.from_array(thresholds)
        numbers["target_weights_as_tensor"] = numpy_helper.from_array(weights[at_leaf, at_output])
    else:
        numbers["nodes_values"] = round_down(thresholds).tolist()
        numbers["target_weights"] = weights[at_leaf, at_output].astype(np.float32).tolist()
    return x.graph.op(
        "TreeEnsembleRegressor",
        x,
        dtype=np.float32,
        shape=(None, width),
        domain=ML,
        n_targets=width,
        nodes_treeids=owners.tolist(),
        nodes_nodeids=ids.tolist(),
        nodes_featureids=np.where(leaf, 0, np.concatenate([t.feature for t in trees])).tolist(),
        nodes_modes=["LEAF" if end else "BRANCH_LEQ" for end in leaf],
        nodes_truenodeids=np.where(leaf, 0, left).tolist(),
        nodes_falsenodeids=np.where(leaf, 0, np.concatenate([t.right for t in trees])).tolist(),
        nodes_missing_value_tracks_true=np.concatenate([t.missing_left for t in trees])
        .astype(np.int64)
        .tolist(),
        target_treeids=owners[at_leaf].tolist(),
        target_nodeids=ids[at_leaf].tolist(),
        target_ids=at_output.tolist(),
        **numbers,
    )
