"""The votes of leaves, and how those of all trees come together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sardonyx.loops.build import maximum, minimum
from sardonyx.loops.nodes import Expr
from sardonyx.ops.lowering import Site
from sardonyx.ops.lowerings.forest import Array, Forest
from sardonyx.sizes import Size, max_of

__all__ = ["AGGREGATES", "Aggregate", "Ballot"]


@dataclass(frozen=True)
class Aggregate:
    """How votes for one target come together, in a kernel and in a table."""

    start: float
    combine: Callable[[Expr, Expr], Expr]
    table: np.ufunc
    average: bool = False


AGGREGATES = {
    "SUM": Aggregate(0.0, lambda a, b: a + b, np.add),
    "AVERAGE": Aggregate(0.0, lambda a, b: a + b, np.add, average=True),
    "MIN": Aggregate(math.inf, minimum, np.minimum),
    "MAX": Aggregate(-math.inf, maximum, np.maximum),
}


class Ballot:
    """The votes of leaves, in the form that suits them.

    one target, one vote a leaf      the vote stands where an inner node has its threshold
    most targets of most leaves      a row of weights for each leaf
    few of many targets              a list of targets and weights for each leaf
    """

    def __init__(self, site: Site, forest: Forest, targets: int, how: Aggregate) -> None:
        self.b, self.targets, self.how = site.b, targets, how
        self.count = forest.count
        start, order = _votes_by_node(forest)
        weights = forest.votes.weights[order].astype(forest.threshold.dtype)
        of = forest.votes.targets[order]
        given, leaves = np.diff(start), np.flatnonzero(forest.leaves)
        self.threshold = forest.threshold
        self.one_each = bool((given[leaves] == 1).all())
        self.single = targets == 1 and self.one_each
        self.dense = not self.single and 2 * len(of) >= len(leaves) * targets
        if self.single:
            self.threshold = forest.threshold.copy()
            self.threshold[leaves] = weights[start[leaves]]
        elif self.dense:
            place = np.zeros(self.count, np.int32)
            place[leaves] = np.arange(len(leaves))
            table = np.full((len(leaves), targets), how.start, weights.dtype)
            how.table.at(table, (place[np.repeat(np.arange(self.count), given)], of), weights)
            self.leaves, self.place = len(leaves), site.table(place)
            self.weights = site.table(table.reshape(-1))
        else:
            self.total = len(of)
            self.start = site.table(start.astype(np.int32))
            self.of = site.table(of.astype(np.int32))
            self.weights = site.table(weights)

    def add(self, threshold: str, node: Size, totals: str, base: Size) -> None:
        """The votes of one leaf into totals[base …]."""
        b = self.b

        def vote(target: Size, weight: Expr) -> None:
            at = base + target
            b.store(totals, at, self.how.combine(b.load(totals, at), weight))

        def listed(at: Size) -> None:
            vote(b.index(b.load(self.of, at), self.targets), b.load(self.weights, at))

        if self.single:
            vote(0, b.load(threshold, node))
        elif self.dense:
            leaf = b.index(b.load(self.place, node), self.leaves)
            with b.loop(self.targets, "vector") as k:
                vote(k, b.load(self.weights, leaf * self.targets + k))
        elif self.one_each:
            listed(b.index(b.load(self.start, node), self.total))
        else:
            first = b.index(b.load(self.start, node), self.total + 1)
            end = b.index(b.load(self.start, node + 1), self.total + 1)
            with b.loop(max_of(0, end - first)) as turn:
                listed(first + turn)


def _votes_by_node(forest: Forest) -> tuple[Array, Array]:
    """Where the votes of each node begin, and which votes those are, node after node."""
    by_row = np.argsort(forest.votes.rows, kind="stable")
    rows = forest.votes.rows[by_row]
    first = np.searchsorted(rows, forest.rows, "left")
    given = np.where(forest.leaves, np.searchsorted(rows, forest.rows, "right") - first, 0)
    start = np.concatenate([[0], np.cumsum(given)])
    inside = np.arange(start[-1]) - np.repeat(start[:-1], given)
    return start, by_row[np.repeat(first, given) + inside]
