"""Tree ensembles, all rows walking down one tree together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sardonyx.backends.reference.corrections.ml_scores import (
    class_labels,
    label_array,
    transformed,
)
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError

_ML = "ai.onnx.ml"
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_MEMBER, _LEAF = 6, 7


@dataclass(frozen=True)
class Forest:
    """Nodes of all trees in one table; a leaf's `feature` is unused and its mode is `_LEAF`.

    Attributes:
        yes, no: rows of the children.
        members: for set tests, the set by row.
        roots: the row each tree starts at.
    """

    mode: Array
    feature: Array
    value: Array
    yes: Array
    no: Array
    missing_yes: Array
    members: dict[int, Array]
    roots: Sequence[int]

    def leaves(self, call: Call, x: Array) -> Array:
        """The leaf row that each input row reaches in each tree, [rows, trees]."""
        if self.feature.size and (self.feature[self.mode != _LEAF] >= x.shape[1]).any():
            raise RunError(f"a node asks for a feature past the {x.shape[1]} given")
        reached = np.empty((len(x), len(self.roots)), dtype=np.int64)
        rows = np.arange(len(x))
        for tree, root in enumerate(self.roots):
            at = np.full(len(x), root)
            # A path is shorter than the table, unless the nodes form a circle.
            for _ in range(len(self.mode) + 1):
                call.check()
                live = self.mode[at] != _LEAF
                if not live.any():
                    break
                walking = at[live]
                values = x[rows[live], self.feature[walking]]
                at[live] = np.where(
                    self._test(walking, values), self.yes[walking], self.no[walking]
                )
            else:
                raise RunError(f"the nodes of tree {tree} form a circle", value=tree)
            reached[:, tree] = at
        return reached

    def _test(self, nodes: Array, values: Array) -> Array:
        mode, limit = self.mode[nodes], self.value[nodes]
        result = np.select(
            [mode == 0, mode == 1, mode == 2, mode == 3, mode == 4, mode == 5],
            [
                values <= limit,
                values < limit,
                values >= limit,
                values > limit,
                values == limit,
                values != limit,
            ],
            default=False,
        )
        for place in np.flatnonzero(mode == _MEMBER):
            result[place] = values[place] in self.members[int(nodes[place])]
        return np.where(np.isnan(values), self.missing_yes[nodes] != 0, result)


def _column(call: Call, name: str, dtype: type, count: int) -> Array:
    """`name` as floats, or `name_as_tensor` where the model is of doubles."""
    given = call.attr(name + "_as_tensor")
    given = call.attr(name) if given is None else given
    if given is None or len(given) == 0:
        return np.zeros(count, dtype=dtype)
    column = np.asarray(given)
    if column.dtype == np.float64 and call.attr(name + "_as_tensor") is None:
        column = column.astype(np.float32)
    if len(column) != count:
        raise RunError(f"{name} has {len(column)} entries for {count} nodes", value=len(column))
    return column


def _named_forest(call: Call) -> tuple[Forest, dict[tuple[int, int], int]]:
    """The forest of TreeEnsembleClassifier and TreeEnsembleRegressor."""
    trees, ids = call.attr("nodes_treeids", ()), call.attr("nodes_nodeids", ())
    count = len(ids)
    row_of = {key: row for row, key in enumerate(zip(trees, ids, strict=True))}
    names = [*_MODES, "", "LEAF"]
    try:
        mode = np.array([names.index(name) for name in call.attr("nodes_modes", ())])
        yes, no = (
            np.array(
                [
                    0 if kind == _LEAF else row_of[tree, child]
                    for kind, tree, child in zip(mode, trees, call.attr(side, ()), strict=True)
                ],
                dtype=np.int64,
            )
            for side in ("nodes_truenodeids", "nodes_falsenodeids")
        )
    except (KeyError, ValueError) as error:
        raise RunError(f"the trees name a node or mode that does not exist: {error}") from error
    forest = Forest(
        mode=mode,
        feature=_column(call, "nodes_featureids", np.int64, count),
        value=_column(call, "nodes_values", np.float32, count),
        yes=yes,
        no=no,
        missing_yes=_column(call, "nodes_missing_value_tracks_true", np.int64, count),
        members={},
        roots=_roots(trees, mode, (yes, no)),
    )
    return forest, row_of


def _roots(trees: Sequence[int], mode: Array, children: Sequence[Array]) -> list[int]:
    """The node of each tree that is nobody's child."""
    inner = mode != _LEAF
    has_parent = np.zeros(len(mode), dtype=bool)
    for child in children:
        has_parent[child[inner]] = True
    roots: dict[int, int] = {}
    for row, tree in enumerate(trees):
        if not has_parent[row]:
            roots.setdefault(tree, row)
    if len(roots) != len(set(trees)):
        raise RunError("a tree has no root: its nodes form a circle")
    return [roots[tree] for tree in sorted(roots)]


def _votes(
    call: Call, prefix: str, row_of: dict[tuple[int, int], int]
) -> dict[int, list[tuple[int, int]]]:
    """For each leaf row, the targets it votes for and where their weights stand."""
    votes: dict[int, list[tuple[int, int]]] = {}
    trees, nodes = call.attr(f"{prefix}_treeids", ()), call.attr(f"{prefix}_nodeids", ())
    for place, (key, target) in enumerate(
        zip(zip(trees, nodes, strict=True), call.attr(f"{prefix}_ids", ()), strict=True)
    ):
        if key not in row_of:
            raise RunError(f"a vote names node {key[1]} of tree {key[0]}, which does not exist")
        votes.setdefault(row_of[key], []).append((int(target), place))
    return votes


def _aggregated(
    leaves: Array, votes: dict[int, list[tuple[int, int]]], weights: Array, targets: int, how: str
) -> Array:
    """Votes of all trees for each target; 0 for a target without any."""
    start = {"MIN": np.inf, "MAX": -np.inf}.get(how, 0.0)
    combine = {"MIN": np.minimum, "MAX": np.maximum}.get(how, np.add)
    total = np.full((len(leaves), targets), start, dtype=np.float64)
    voted = np.zeros(total.shape, dtype=bool)
    for tree in range(leaves.shape[1]):
        for leaf in np.unique(leaves[:, tree]):
            rows = np.flatnonzero(leaves[:, tree] == leaf)
            for target, place in votes.get(int(leaf), ()):
                if not 0 <= target < targets:
                    raise RunError(f"target {target} is outside {targets}", value=target)
                total[rows, target] = combine(total[rows, target], float(weights[place]))
                voted[rows, target] = True
    if how == "AVERAGE":
        total /= max(leaves.shape[1], 1)
    return np.where(voted, total, 0.0)


def _weights(call: Call, prefix: str) -> Array:
    given = call.attr(f"{prefix}_weights_as_tensor")
    if given is not None:
        return np.asarray(given)
    return np.asarray(call.attr(f"{prefix}_weights", ()), dtype=np.float32)


def _base(call: Call) -> Array:
    given = call.attr("base_values_as_tensor")
    return np.asarray(call.attr("base_values", ()) if given is None else given, dtype=np.float64)


@corrects("TreeEnsembleRegressor", domain=_ML, reason="vectorised; doubles, every post_transform")
def tree_ensemble_regressor(call: Call, x: Array) -> Array:
    forest, row_of = _named_forest(call)
    targets = int(call.attr("n_targets", 1))
    leaves = forest.leaves(call, _features(x))
    how = call.attr("aggregate_function", "SUM")
    if how not in ("SUM", "AVERAGE", "MIN", "MAX"):
        raise RunError(f"aggregate_function {how!r} is unknown", value=how)
    votes = _votes(call, "target", row_of)
    total = _aggregated(leaves, votes, _weights(call, "target"), targets, how)
    base = _base(call)
    if base.size:
        total = total + base
    return transformed(total.astype(np.float32), call.attr("post_transform", "NONE"))


@corrects("TreeEnsembleClassifier", domain=_ML, reason="vectorised; doubles, one or two labels")
def tree_ensemble_classifier(call: Call, x: Array) -> tuple[Array, Array]:
    forest, row_of = _named_forest(call)
    labels = class_labels(call, "classlabels_int64s", "classlabels_strings")
    leaves = forest.leaves(call, _features(x))
    votes = _votes(call, "class", row_of)
    weights = _weights(call, "class")
    total = _aggregated(leaves, votes, weights, max(len(labels), 1), "SUM")
    base = _base(call)
    transform = call.attr("post_transform", "NONE")
    # Two base values are two scores, also where only the first class has votes.
    if len(labels) <= 2 and base.size < 2 and set(call.attr("class_ids", ())) == {0}:
        return _binary(labels, total[:, 0], base, weights, transform)
    if base.size:
        total = total + base
    best = np.argmax(total, axis=1) if len(total) else np.zeros(0, dtype=np.int64)
    return label_array(labels, best), transformed(total.astype(np.float32), transform)


def _binary(
    labels: Array, score: Array, base: Array, weights: Array, transform: str
) -> tuple[Array, Array]:
    """One score decides between two labels, or for and against a single one.

    Weights that are all positive are probabilities of the second label; else the score's sign
    decides.
    """
    if base.size:
        score = score + base[-1]
    probabilities = bool((weights >= 0).all())
    chosen = (score > 0.5 if probabilities else score > 0).astype(np.int64)
    if len(labels) == 1:
        other = np.array([""], dtype=object) if labels.dtype == object else np.array([0])
        labels, scores = np.concatenate([other, labels]), score[:, None]
    elif transform == "PROBIT" or (transform == "NONE" and probabilities):
        scores = np.stack([1 - score, score], 1)
    else:
        scores = np.stack([-score, score], 1)
    return label_array(labels, chosen), transformed(scores.astype(np.float32), transform)


def _features(x: Array) -> Array:
    if x.ndim == 1:
        x = x.reshape(1, -1)
    if x.ndim != 2:
        raise RunError(f"the input has shape {list(x.shape)}, not [N, F]", value=x.shape)
    return x if x.dtype.kind == "f" and x.dtype.itemsize >= 4 else x.astype(np.float32)


@corrects("TreeEnsemble", domain=_ML, reason="vectorised; post_transform, and circles are errors")
def tree_ensemble(call: Call, x: Array) -> Array:
    forest, leaf_of = _numbered_forest(call)
    targets = int(call.attr("n_targets", 1))
    leaves = forest.leaves(call, _features(x))
    ids = np.asarray(call.attr("leaf_targetids"))
    weights = np.asarray(call.attr("leaf_weights"))
    votes = {row: [(int(ids[leaf]), leaf)] for row, leaf in leaf_of.items()}
    code = int(call.attr("aggregate_function", 1))
    if not 0 <= code <= 3:
        raise RunError(f"aggregate_function {code} is unknown", value=code)
    how = ("AVERAGE", "SUM", "MIN", "MAX")[code]
    total = _aggregated(leaves, votes, weights, targets, how)
    names = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    code = int(call.attr("post_transform", 0))
    if not 0 <= code < len(names):
        raise RunError(f"post_transform {code} is unknown", value=code)
    return transformed(total.astype(x.dtype), names[code])


def _numbered_forest(call: Call) -> tuple[Forest, dict[int, int]]:
    """The forest of TreeEnsemble: inner nodes first, then a row for each leaf."""
    mode = np.asarray(call.attr("nodes_modes")).astype(np.int64)
    inner, leaves = len(mode), len(call.attr("leaf_weights"))
    children = []
    for side in ("true", "false"):
        ids = np.asarray(call.attr(f"nodes_{side}nodeids"), dtype=np.int64)
        is_leaf = np.asarray(call.attr(f"nodes_{side}leafs"), dtype=np.int64) != 0
        limit = np.where(is_leaf, leaves, inner)
        if len(ids) != inner or ((ids < 0) | (ids >= limit)).any():
            raise RunError(f"nodes_{side}nodeids name a node that does not exist")
        children.append(np.where(is_leaf, ids + inner, ids))
    tail = np.zeros(leaves, dtype=np.int64)
    splits = np.asarray(call.attr("nodes_splits"))
    roots = [int(root) for root in call.attr("tree_roots")]
    if any(not 0 <= root < inner for root in roots) or ((mode < 0) | (mode > _MEMBER)).any():
        raise RunError("tree_roots or nodes_modes name what does not exist")
    return (
        Forest(
            mode=np.concatenate([mode, np.full(leaves, _LEAF)]),
            feature=np.concatenate([np.asarray(call.attr("nodes_featureids")), tail]),
            value=np.concatenate([splits, tail.astype(splits.dtype)]),
            yes=np.concatenate([children[0], tail]),
            no=np.concatenate([children[1], tail]),
            missing_yes=np.concatenate(
                [_column(call, "nodes_missing_value_tracks_true", np.int64, inner), tail]
            ),
            members=_members(call, mode),
            roots=roots,
        ),
        {inner + leaf: leaf for leaf in range(leaves)},
    )


def _members(call: Call, mode: Array) -> dict[int, Array]:
    """Sets stand in the order of their nodes, each ended by a NaN."""
    rows = np.flatnonzero(mode == _MEMBER)
    given = call.attr("membership_values")
    values = np.asarray(() if given is None else given, dtype=np.float64)
    ends = np.flatnonzero(np.isnan(values))
    if len(ends) != len(rows):
        raise RunError(f"{len(ends)} sets for {len(rows)} nodes that test membership")
    starts = [0, *(ends[:-1] + 1)] if len(ends) else []
    return {int(row): values[start:end] for row, start, end in zip(rows, starts, ends, strict=True)}
