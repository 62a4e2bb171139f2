"""Tree ensembles as tables that every row can walk without a branch.

    node        step                       what it holds
    inner       (column, left child)       a threshold: left if x[column] <= threshold, else left + 1
    leaf        (last column, itself)      its vote; the last column is -∞, so that a leaf never moves

The nodes of one tree lie together, level by level; trees are sorted by depth, so that neighbours walk
equally far. All tests become one: `>=` and `>` exchange the children, `==` is an interval, a set of
members is a chain of `==`. Where NaN should go left, the node asks for a copy of the feature in
which NaN is replaced by something that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sardonyx.ops.call import Call
from sardonyx.ops.lowering import NotNative

__all__ = ["Forest", "Votes", "grow", "named_forest", "numbered_forest"]

Array: TypeAlias = npt.NDArray[Any]

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF = range(8)
MAX_DEPTH = 512  # a path of nodes that form a circle has no end
MAX_COPIES = 4  # times that a node may stand in the tables because several nodes lead to it
MAX_COLUMNS = 1 << 15


@dataclass(frozen=True, eq=False)
class Votes:
    """Who votes for what: vote i of node `rows[i]` gives `weights[i]` to `targets[i]`."""

    rows: Array
    targets: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes as the model has them; rows are referred to by number."""

    mode: Array
    feature: Array
    value: Array
    yes: Array
    no: Array
    missing_yes: Array
    roots: Array
    votes: Votes


@dataclass(frozen=True, eq=False)
class Forest:
    """The tables.

    Attributes:
        steps: for each node its column and its left child, in turn.
        threshold: of inner nodes.
        low: the lower end of each node's interval; None where all begin at -∞.
        strict: tests are x < threshold.
        columns: the feature that each column holds, but for the last one.
        fills: what stands for NaN in each column; NaN leaves it.
        roots, depths: of each tree.
        rows: the model's node that each node is.
    """

    steps: Array
    threshold: Array
    low: Array | None
    strict: bool
    columns: Array
    fills: Array
    roots: Array
    depths: Array
    rows: Array
    votes: Votes

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def leaves(self) -> Array:
        """Whether each node is a leaf."""
        leaves: Array = self.steps[0::2] == len(self.columns)
        return leaves


# What the model says


def column_of(call: Call, name: str, count: int) -> Array:
    """`name`, or `name_as_tensor` where the model is of doubles; zeros where it is left out."""
    tensor = call.attr(f"{name}_as_tensor")
    given = call.attr(name) if tensor is None else tensor.numpy()
    if given is None or len(given) == 0:
        return np.zeros(count, np.float32)
    column = np.asarray(given)
    if len(column) != count:
        raise NotNative(f"{name} has {len(column)} entries for {count}")
    return column.astype(np.float32) if tensor is None and column.dtype.kind == "f" else column


def named_forest(call: Call, prefix: str) -> Nodes:
    """The nodes of TreeEnsembleClassifier and TreeEnsembleRegressor, by tree and node id."""
    trees, ids = call.attr("nodes_treeids", ()), call.attr("nodes_nodeids", ())
    count = len(ids)
    row_of = {key: row for row, key in enumerate(zip(trees, ids, strict=True))}
    codes = {name: code for code, name in enumerate(MODES)} | {"LEAF": LEAF}
    try:
        mode = np.array([codes[_text(name)] for name in call.attr("nodes_modes", ())], np.int64)
        yes, no = (
            _children(row_of, mode, trees, call.attr(side, ()))
            for side in ("nodes_truenodeids", "nodes_falsenodeids")
        )
        named = (call.attr(f"{prefix}_{part}", ()) for part in ("treeids", "nodeids"))
        keys = zip(*named, strict=True)
        voters = np.array([row_of[key] for key in keys], np.int64)
    except (KeyError, ValueError) as error:
        raise NotNative("the trees name a node or mode that does not exist") from error
    targets = np.array(call.attr(f"{prefix}_ids", ()), np.int64)
    votes = Votes(voters, targets, column_of(call, f"{prefix}_weights", len(targets)))
    if len(voters) != len(targets):
        raise NotNative(f"{len(voters)} votes for {len(targets)} targets")
    return Nodes(
        mode,
        column_of(call, "nodes_featureids", count).astype(np.int64),
        column_of(call, "nodes_values", count),
        yes,
        no,
        column_of(call, "nodes_missing_value_tracks_true", count) != 0,
        _roots(trees, mode, yes, no),
        votes,
    )


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _children(
    row_of: Mapping[tuple[int, int], int], mode: Array, trees: Sequence[int], ids: Sequence[int]
) -> Array:
    rows = [
        0 if kind == LEAF else row_of[tree, child]
        for kind, tree, child in zip(mode.tolist(), trees, ids, strict=True)
    ]
    return np.array(rows, np.int64)


def _roots(trees: Sequence[int], mode: Array, yes: Array, no: Array) -> Array:
    """The first node of each tree that is nobody's child, in the order of the trees' ids."""
    orphan = np.ones(len(mode), bool)
    orphan[yes[mode != LEAF]] = False
    orphan[no[mode != LEAF]] = False
    rows = np.flatnonzero(orphan)
    owners = np.asarray(trees, np.int64)
    found, first = np.unique(owners[rows], return_index=True)
    if len(found) != len(np.unique(owners)):
        raise NotNative("a tree has no root: its nodes form a circle")
    return rows[first]


def numbered_forest(call: Call) -> Nodes:
    """The nodes of TreeEnsemble: inner nodes first, then a row for each leaf."""
    mode = call.attr("nodes_modes").numpy().astype(np.int64)
    inner, weights = len(mode), call.attr("leaf_weights").numpy()
    leaves, tail = len(weights), np.zeros(len(weights), np.int64)
    children = []
    for side in ("true", "false"):
        ids = np.array(call.attr(f"nodes_{side}nodeids"), np.int64)
        is_leaf = np.array(call.attr(f"nodes_{side}leafs"), np.int64) != 0
        if len(ids) != inner or len(is_leaf) != inner:
            raise NotNative(f"nodes_{side}nodeids do not name a child of every node")
        if ((ids < 0) | (ids >= np.where(is_leaf, leaves, inner))).any():
            raise NotNative(f"nodes_{side}nodeids name a node that does not exist")
        children.append(np.concatenate([np.where(is_leaf, ids + inner, ids), tail]))
    roots = np.array(call.attr("tree_roots"), np.int64)
    if ((roots < 0) | (roots >= inner)).any() or ((mode < 0) | (mode > MEMBER)).any():
        raise NotNative("tree_roots or nodes_modes name what does not exist")
    targets = np.array(call.attr("leaf_targetids"), np.int64)
    if len(targets) != leaves:
        raise NotNative(f"{len(targets)} targets for {leaves} leaves")
    missing = column_of(call, "nodes_missing_value_tracks_true", inner) != 0
    splits = call.attr("nodes_splits").numpy()
    nodes = Nodes(
        np.concatenate([mode, np.full(leaves, LEAF)]),
        np.concatenate([np.array(call.attr("nodes_featureids"), np.int64), tail]),
        np.concatenate([splits, tail.astype(splits.dtype)]),
        children[0],
        children[1],
        np.concatenate([missing, tail != 0]),
        roots,
        Votes(np.arange(inner, inner + leaves), targets, weights),
    )
    return _without_sets(nodes, call) if (mode == MEMBER).any() else nodes


def _without_sets(nodes: Nodes, call: Call) -> Nodes:
    """x in {a, b, c} as a chain: x == a, else x == b, else x == c. Each set ends with a NaN."""
    given = call.attr("membership_values")
    values = np.zeros(0) if given is None else given.numpy()
    ends = np.flatnonzero(np.isnan(values))
    rows = np.flatnonzero(nodes.mode == MEMBER)
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    if len(ends) != len(rows) or (starts == ends).any():
        raise NotNative("the sets of members do not match the nodes that ask for them")
    total = len(nodes.mode)
    origin, tests, chained = [np.arange(total)], nodes.value.copy(), nodes.no.copy()
    more_tests, more_no = [], []
    for row, start, end in zip(rows, starts, ends, strict=True):
        extra = end - start - 1
        tests[row] = values[start]
        if extra:
            chained[row] = total
            origin.append(np.full(extra, row))
            more_tests.append(values[start + 1 : end])
            more_no.append(np.append(np.arange(total + 1, total + extra), nodes.no[row]))
            total += extra
    take = np.concatenate(origin)
    mode = np.where(nodes.mode == MEMBER, EQ, nodes.mode)
    return Nodes(
        mode[take],
        nodes.feature[take],
        np.concatenate([tests, *more_tests]),
        nodes.yes[take],
        np.concatenate([chained, *more_no]),
        nodes.missing_yes[take],
        nodes.roots,
        nodes.votes,
    )


# The tables


def grow(nodes: Nodes, real: npt.DTypeLike) -> Forest:
    """Lay the nodes out; thresholds are of the type `real`."""
    inner = nodes.mode != LEAF
    if (nodes.feature[inner] < 0).any():
        raise NotNative("a node asks for a feature below 0")
    threshold, low, strict = _tests(nodes, np.dtype(real))
    exchanged = np.isin(nodes.mode, (GTE, GT, NEQ))
    left = np.where(exchanged, nodes.no, nodes.yes)
    right = np.where(exchanged, nodes.yes, nodes.no)
    rows, child, roots, depths = _levels(left, right, inner, nodes.roots)
    fill = np.where(nodes.missing_yes != exchanged, -np.inf if low is None else low, np.nan)
    columns, fills, column = _columns(nodes.feature[inner], fill[inner])
    of_node = np.full(len(inner), len(columns), np.int64)
    of_node[inner] = column
    steps = np.stack([of_node[rows], child], 1).astype(np.int32).reshape(-1)
    return Forest(
        steps,
        threshold[rows],
        None if low is None else low[rows],
        strict,
        columns,
        fills.astype(real),
        roots,
        depths,
        rows,
        nodes.votes,
    )


def _tests(nodes: Nodes, real: np.dtype[Any]) -> tuple[Array, Array | None, bool]:
    """Thresholds and lower ends, so that one kind of test serves all nodes."""
    inner = nodes.mode != LEAF
    value = np.where(inner, nodes.value, 0).astype(real)
    if np.isnan(value).any():
        raise NotNative("a node compares with NaN")
    kinds = set(nodes.mode[inner].tolist())
    below = np.isin(nodes.mode, (LT, GTE))  # the left child takes x < value
    if (value[below] == -np.inf).any():
        raise NotNative("a node compares with -∞")
    if kinds and kinds <= {LT, GTE}:
        return value, None, True
    # The number before 0 is the smallest normal one: threads may take subnormal ones for 0.
    before = np.where(value == 0, -np.finfo(real).tiny, np.nextafter(value, real.type(-np.inf)))
    threshold = np.where(below, before, value).astype(real)
    equal = np.isin(nodes.mode, (EQ, NEQ))
    low = np.where(equal, value, real.type(-np.inf)).astype(real) if equal.any() else None
    return threshold, low, False


def _levels(
    left: Array, right: Array, inner: Array, roots: Array
) -> tuple[Array, Array, Array, Array]:
    """Nodes tree by tree and level by level, siblings side by side.

    Returns the row of each node, its left child (a leaf's is itself), and the trees' roots and
    depths, from the shallowest to the deepest.
    """
    levels: list[tuple[Array, Array]] = [(roots, np.arange(len(roots)))]
    first_child: list[Array] = []
    size, limit = len(roots), MAX_COPIES * len(left) + len(roots)
    depths = np.zeros(len(roots), np.int64)
    while True:
        rows, trees = levels[-1]
        parents = np.flatnonzero(inner[rows])
        child = np.full(len(rows), -1, np.int64)
        child[parents] = size + 2 * np.arange(len(parents))
        first_child.append(child)
        if not len(parents):
            break
        if len(levels) > MAX_DEPTH:
            raise NotNative(f"a tree has more than {MAX_DEPTH} levels, or its nodes form a circle")
        depths[trees[parents]] = len(levels)
        below = np.stack([left[rows[parents]], right[rows[parents]]], 1).reshape(-1)
        levels.append((below, np.repeat(trees[parents], 2)))
        size += len(below)
        if size > limit:
            raise NotNative("too many nodes are reached along several paths")
    rows = np.concatenate([level[0] for level in levels])
    by_depth = np.argsort(depths, kind="stable")
    rank = np.argsort(by_depth, kind="stable")
    order = np.argsort(rank[np.concatenate([level[1] for level in levels])], kind="stable")
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    child = np.concatenate(first_child)
    moved = np.where(child >= 0, place[child], place)
    return rows[order], moved[order], place[: len(roots)][by_depth], depths[by_depth]


def _columns(features: Array, fills: Array) -> tuple[Array, Array, Array]:
    """Every feature with each of its replacements for NaN, and the column of each node."""
    kept = np.isnan(fills)
    pairs = np.stack([~kept, np.where(kept, 0, fills), features], 1, dtype=np.float64)
    found, column = np.unique(pairs, axis=0, return_inverse=True)
    if len(found) > MAX_COLUMNS:
        raise NotNative(f"the trees ask for more than {MAX_COLUMNS} features")
    replacements = np.where(found[:, 0] == 0, np.nan, found[:, 1])
    return found[:, 2].astype(np.int32), replacements, column.reshape(-1)
