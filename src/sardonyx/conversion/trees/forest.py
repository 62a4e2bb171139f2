"""A boosted model without its library: columns, trees, and what becomes of their scores.

    features ─► columns ─► trees ─► scores (the sum of all votes, and the base) ─► steps ─► head
                (prepared)

A library's reader makes this, `writing` prints it as ONNX. Every choice that depends on the library (which side a
missing value takes, which category goes where) is made by the reader, so that a node here is one plain comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "AT_MOST",
    "BELOW",
    "EQUAL",
    "LEAF",
    "Above",
    "Array",
    "Category",
    "Column",
    "Digit",
    "Ensemble",
    "Head",
    "Label",
    "Linear",
    "Lookup",
    "Step",
    "Tree",
    "ZeroAsMissing",
    "constant_tree",
    "grounded",
    "reachable",
    "tree_of_rows",
]

Array: TypeAlias = npt.NDArray[Any]
Label: TypeAlias = int | str

LEAF, BELOW, AT_MOST, EQUAL = range(4)  # x < threshold, x <= threshold, x == threshold


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree; nodes are rows of the arrays, and the first one is the root.

    Attributes:
        test: LEAF, BELOW, AT_MOST or EQUAL.
        column: that an inner node looks at.
        threshold: that it compares with.
        yes, no: the rows that follow.
        missing_yes: whether NaN goes to `yes`.
        voters, targets, weights: votes of leaves: row, target and weight. A leaf votes once a target at most.
    """

    test: Array
    column: Array
    threshold: Array
    yes: Array
    no: Array
    missing_yes: Array
    voters: Array
    targets: Array
    weights: Array

    @property
    def leaves(self) -> int:
        return int((self.test == LEAF).sum())


def tree_of_rows(nodes: Iterable[Sequence[float]], votes: Iterable[tuple[int, int, float]]) -> Tree:
    """A tree from its rows in the order of `Tree`'s attributes, and votes as (row, target, weight)."""
    test, column, threshold, yes, no, missing_yes = zip(*nodes, strict=True)
    voters, targets, weights = zip(*votes, strict=True)
    return Tree(
        np.array(test),
        np.array(column, np.int64),
        np.array(threshold, np.float64),
        np.array(yes, np.int64),
        np.array(no, np.int64),
        np.array(missing_yes, bool),
        np.array(voters, np.int64),
        np.array(targets, np.int64),
        np.array(weights, np.float64),
    )


def constant_tree(targets: Sequence[int], weights: Sequence[float]) -> Tree:
    """Two leaves that say the same: for runtimes that want a node to begin with."""
    zeros = np.zeros(3, np.int64)
    return Tree(
        test=np.array([AT_MOST, LEAF, LEAF]),
        column=zeros,
        threshold=np.zeros(3),
        yes=np.array([1, 0, 0]),
        no=np.array([2, 0, 0]),
        missing_yes=zeros.astype(bool),
        voters=np.repeat([1, 2], len(targets)),
        targets=np.tile(np.asarray(targets, np.int64), 2),
        weights=np.tile(np.asarray(weights, np.float64), 2),
    )


def reachable(tree: Tree) -> Tree:
    """The tree without nodes that nobody leads to: some runtimes take those for trees of their own."""
    kept = np.zeros(len(tree.test), bool)
    level = np.zeros(1, np.int64)
    while len(level):
        level = level[~kept[level]]
        kept[level] = True
        inner = level[tree.test[level] != LEAF]
        level = np.concatenate([tree.yes[inner], tree.no[inner]])
    place = np.cumsum(kept) - 1
    votes = kept[tree.voters]
    return Tree(
        tree.test[kept],
        tree.column[kept],
        tree.threshold[kept],
        place[tree.yes[kept]],
        place[tree.no[kept]],
        tree.missing_yes[kept],
        place[tree.voters[votes]],
        tree.targets[votes],
        tree.weights[votes],
    )


@dataclass(frozen=True)
class ZeroAsMissing:
    """The feature with NaN in place of every number that the library takes for zero.

    Attributes:
        within: numbers no further from zero than this are zero.
    """

    feature: int
    within: float


@dataclass(frozen=True)
class Category:
    """A feature that holds the number of a category, as a digit: that number, `size` for others, one more for NaN.

    Attributes:
        toward_zero: -0.5 is category 0, as a cast to int has it; else it is one of the others.
    """

    feature: int
    size: int
    toward_zero: bool = False

    @property
    def options(self) -> int:
        return self.size + 2


@dataclass(frozen=True)
class Above:
    """Whether a feature is above a border, as a digit; `missing` is what NaN counts as."""

    feature: int
    border: float
    missing: bool

    @property
    def options(self) -> int:
        return 2


Digit: TypeAlias = Category | Above


@dataclass(frozen=True)
class Lookup:
    """What a table says; its place is the number that the digits make, the last running fastest."""

    digits: tuple[Digit, ...]
    table: tuple[float, ...]


Column: TypeAlias = ZeroAsMissing | Lookup


@dataclass(frozen=True, eq=False)
class Linear:
    """A weight for every feature and score, (features, scores); missing features count as 0."""

    weights: Array


@dataclass(frozen=True)
class Step:
    """One operator on the way from scores to answers; `value` is its second operand, where it has one."""

    op: Literal[
        "Mul", "Sigmoid", "Softmax", "Exp", "Softplus", "SignedSquare", "Positive", "Variance"
    ]
    value: float | None = None


@dataclass(frozen=True)
class Head:
    """What the answers are.

    Attributes:
        kind: "values": as many numbers as there are scores;
            "binary": one score is the second label's;
            "classes": the largest of the scores has the label;
            "flags": every score is a label of its own, 1 where it is probable.
        steps: from scores to values or probabilities.
        labels: of the classes.
        by_score: a binary label is the second one where the score (else: its probability) is above `boundary`.
    """

    kind: Literal["values", "binary", "classes", "flags"]
    steps: tuple[Step, ...] = ()
    labels: tuple[Label, ...] = ()
    by_score: bool = True
    boundary: float = 0.0


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The whole model.

    Attributes:
        features: that the caller feeds.
        columns: prepared ones; the first of them has the number `features`.
        trees: their votes are added.
        scores: how many there are. Targets from there on are slopes: target scores + i * len(sloped) + j is what
            score i gains for each unit of the feature sloped[j].
        base: added to each score.
        real: the type in which the library compares and adds.
        missing: a number that stands for NaN.
        rounds_inputs: the library takes inputs of doubles as float32.
    """

    features: int
    trees: tuple[Tree, ...]
    scores: int
    base: Array
    head: Head
    real: Literal["float32", "float64"]
    columns: tuple[Column, ...] = ()
    sloped: tuple[int, ...] = ()
    linear: Linear | None = None
    missing: float | None = None
    rounds_inputs: bool = True


def grounded(ensemble: Ensemble) -> tuple[Tree, ...]:
    """The trees with the base in their leaves, every one with a node to begin with.

    Runtimes disagree whether a base value counts for a target that has no votes; votes they all count.
    """
    targets = ensemble.scores * (1 + len(ensemble.sloped))
    constant = np.zeros(targets)
    constant[: ensemble.scores] = ensemble.base
    grown = []
    for tree in ensemble.trees:
        if tree.test[0] == LEAF:
            np.add.at(constant, tree.targets, tree.weights)
        else:
            grown.append(tree)
    left = set(range(targets))
    for index, tree in enumerate(grown):
        if not left:
            break
        counts = np.bincount(tree.targets, minlength=targets)
        full = sorted(left & set(np.flatnonzero(counts == tree.leaves).tolist()))
        if full:
            extra = np.where(np.isin(tree.targets, full), constant[tree.targets], 0.0)
            grown[index] = replace(tree, weights=tree.weights + extra)
            left.difference_update(full)
    if left or not grown:
        rest = sorted(left)
        grown.append(constant_tree(rest, constant[rest].tolist()))
    return tuple(grown)
