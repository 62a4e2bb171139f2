"""Tree ensembles: eight walks side by side, without a branch.

    many rows                                 few rows
    for each block of rows, in parallel       for each row and eight trees, in parallel
      copy the features that are asked for      walk the eight trees
      for each tree                           for each row
        for eight rows: walk, add the votes     add the votes of all trees
      finish the rows

Walks that do not depend on each other keep the memory busy. Votes are added in one order of trees,
so that a row's result does not depend on its neighbours, nor on threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from sardonyx.loops.build import cast, where
from sardonyx.loops.nodes import Const, Dtype, Expr, apply, const
from sardonyx.ops.lowering import Nest, Site
from sardonyx.ops.lowerings.ballots import AGGREGATES, Ballot
from sardonyx.ops.lowerings.forest import Array, Forest, grow, named_forest, numbered_forest
from sardonyx.ops.lowerings.scores import (
    TRANSFORMS,
    largest_score,
    numbers,
    store_labels,
    store_scores,
)
from sardonyx.sizes import Size, at_least, ceil_div, max_of, min_of

__all__ = ["TREE_ENSEMBLE", "TREE_ENSEMBLE_CLASSIFIER", "TREE_ENSEMBLE_REGRESSOR"]

LANES = 8  # walks side by side: enough to hide what one step waits for
STEP = 8  # operations of one step down a tree
BLOCK_LANES = 64  # a block has at most so many times LANES rows: a tree stays near while they pass
BLOCKS = 8  # that a run has at least, if its rows allow
CHECKED_DEPTH = 16  # deeper trees are asked every so many levels whether all walks have ended


class Walk:
    """The tables of a forest in a kernel, and the steps down its trees."""

    def __init__(self, site: Site, forest: Forest, ballot: Ballot, real: Dtype) -> None:
        self.site, self.b, self.forest, self.ballot, self.real = site, site.b, forest, ballot, real
        self.width = len(forest.columns) + 1
        self.trees = len(forest.roots)
        short = -self.trees % LANES
        roots = np.append(forest.roots, np.repeat(forest.roots[-1:], short))
        depths = np.append(forest.depths, np.repeat(forest.depths[-1:], short))
        self.groups = len(roots) // LANES
        self.deepest = int(depths[-1])
        self.steps, self.threshold = site.table(forest.steps), site.table(ballot.threshold)
        self.low = None if forest.low is None else site.table(forest.low)
        self.roots = site.table(roots.astype(np.int32))
        self.depths = site.table(depths.astype(np.int32))
        self._prepare_columns()

    def _prepare_columns(self) -> None:
        forest, features = self.forest, self.site.shape(0)[-1]
        asked = forest.columns
        plain = isinstance(features, int) and np.array_equal(asked, np.arange(features))
        self.columns = None if plain else self.site.table(asked)
        self.fills = None if np.isnan(forest.fills).all() else self.site.table(forest.fills)

    def copy_row(self, row: Size, rows: str, base: Size) -> None:
        """The features that nodes ask for, and the column in which leaves look."""
        b, site = self.b, self.site
        shape = site.shape(0)
        with b.loop(self.width - 1, "vector") as j:
            feature = j
            if self.columns is not None:
                feature = b.index(b.load(self.columns, j), shape[-1])
            at = (row, feature) if len(shape) == 2 else (feature,)
            value = b.let(cast(site.operand(0, at), self.real))
            if self.fills is not None:
                value = where(apply("isnan", value), b.load(self.fills, j), value)
            b.store(rows, base + j, value)
        b.store(rows, base + self.width - 1, const(-math.inf, self.real))

    def place(self, first: Size, lane: Size) -> Size:
        """Where the copy of a row begins."""
        return (first + lane) * self.width

    def root(self, tree: Size) -> Expr:
        return cast(self.b.load(self.roots, tree), "i64")

    def descend(self, nodes: str, tree: Size, rows: str, base: Callable[[Size], Size]) -> None:
        """Walk all lanes down as far as tree number `tree` is deep; `base` is where a lane's row lies."""
        b = self.b
        levels = b.index(b.load(self.depths, tree), self.deepest + 1)
        if self.deepest <= CHECKED_DEPTH:
            with b.loop(levels):
                self._step(nodes, rows, base)
            return
        walking = b.local(Const(True, "bool"))
        with b.loop(ceil_div(levels, CHECKED_DEPTH // 2)), b.when(walking):
            with b.loop(CHECKED_DEPTH // 2):
                self._step(nodes, rows, base)
            b.set(walking, Const(False, "bool"))
            with b.loop(LANES, "unroll") as lane:
                column = b.load(self.steps, 2 * b.index(b.element(nodes, lane), self.ballot.count))
                b.set(walking, walking | apply("ne", column, self.width - 1))

    def _step(self, nodes: str, rows: str, base: Callable[[Size], Size]) -> None:
        b = self.b
        with b.loop(LANES, "unroll") as lane:
            node = b.index(b.element(nodes, lane), self.ballot.count)
            column = b.index(b.load(self.steps, 2 * node), self.width)
            value = b.let(b.load(rows, base(lane) + column))
            goes_left = apply(
                "lt" if self.forest.strict else "le", value, b.load(self.threshold, node)
            )
            if self.low is not None:
                goes_left = goes_left & (value >= b.load(self.low, node))
            left = cast(b.load(self.steps, 2 * node + 1), "i64")
            b.put(nodes, lane, left + cast(~goes_left, "i64"))


Finish = Callable[[Size, Callable[[Size], Expr]], None]


def _vote(walk: Walk, finish: Finish) -> None:
    """Totals of all rows; `finish` stores a row of them."""
    site, forest = walk.site, walk.forest
    shape = site.shape(0)
    features = shape[-1]
    asked = int(forest.columns.max(initial=-1)) + 1
    if isinstance(features, int) and features < asked:
        site.refuse(f"a node asks for feature {asked - 1} of {features}")
    if not isinstance(features, int):
        given = site.b.size(features)
        reason = "a node asks for feature {limit}, past the {value} given"
        site.b.fail_if(given < asked, reason, given, asked - 1)
    rows: Size = shape[0] if len(shape) == 2 else 1
    lane_rows = LANES * min_of(BLOCK_LANES, max_of(1, ceil_div(rows, LANES * BLOCKS)))
    copies = site.scratch(walk.real, ceil_div(rows, lane_rows) * lane_rows * walk.width)
    totals = site.scratch(walk.real, ceil_div(rows, lane_rows) * lane_rows * walk.ballot.targets)
    if at_least(rows, LANES):
        _many_rows(walk, rows, lane_rows, copies, totals, finish)
    elif isinstance(rows, int):
        _few_rows(walk, rows, copies, totals, finish)
    else:
        with site.b.when(site.b.size(rows) >= LANES):
            _many_rows(walk, rows, lane_rows, copies, totals, finish)
        with site.b.otherwise():
            _few_rows(walk, rows, copies, totals, finish)


def _many_rows(
    walk: Walk, rows: Size, block: Size, copies: str, totals: str, finish: Finish
) -> None:
    b, ballot = walk.b, walk.ballot
    work = block * walk.trees * max(walk.deepest, 1) * STEP
    with b.parallel((ceil_div(rows, block),), work) as (number,):
        block = b.named(block, LANES * BLOCK_LANES + 1)
        first = b.named(number * block, rows)
        here = b.index(b.size(min_of(block, rows - first)), block + 1)
        lanes = b.index(b.size(ceil_div(here, LANES)), block + 1)
        with b.loop(lanes * LANES) as r:
            # The last eight rows are filled up with copies of the last one.
            row = b.index(b.size(min_of(first + r, rows - 1)), rows)
            walk.copy_row(row, copies, (first + r) * walk.width)
        _clear(walk, totals, first * ballot.targets, lanes * (LANES * ballot.targets))
        with b.loop(walk.trees) as tree:
            root = b.let(walk.root(tree))
            with b.loop(lanes) as group:
                base = b.index(b.size(first + group * LANES), rows)
                nodes = b.array("i64", LANES)
                with b.loop(LANES, "unroll") as lane:
                    b.put(nodes, lane, root)
                walk.descend(nodes, tree, copies, partial(walk.place, base))
                with b.loop(LANES, "unroll") as lane:
                    node = b.index(b.element(nodes, lane), ballot.count)
                    ballot.add(walk.threshold, node, totals, (base + lane) * ballot.targets)
        with b.loop(here) as r:
            finish(first + r, _score(walk, totals, (first + r) * ballot.targets))


def _few_rows(walk: Walk, rows: Size, copies: str, totals: str, finish: Finish) -> None:
    b, ballot = walk.b, walk.ballot
    reached = walk.site.scratch("i32", LANES * walk.groups * LANES)
    padded = walk.groups * LANES
    with b.loop(rows) as row:
        walk.copy_row(row, copies, row * walk.width)
    with b.parallel((rows, walk.groups), LANES * max(walk.deepest, 1) * STEP) as (row, group):
        nodes = b.array("i64", LANES)
        with b.loop(LANES, "unroll") as lane:
            b.put(nodes, lane, walk.root(group * LANES + lane))
        walk.descend(nodes, group * LANES + LANES - 1, copies, lambda lane: row * walk.width)
        with b.loop(LANES, "unroll") as lane:
            b.store(reached, row * padded + group * LANES + lane, b.element(nodes, lane))
    with b.loop(rows) as row:
        base = row * ballot.targets
        _clear(walk, totals, base, ballot.targets)
        with b.loop(walk.trees) as tree:
            node = b.index(b.load(reached, row * padded + tree), ballot.count)
            ballot.add(walk.threshold, node, totals, base)
        finish(row, _score(walk, totals, base))


def _clear(walk: Walk, totals: str, base: Size, count: Size) -> None:
    with walk.b.loop(count, "vector") as k:
        walk.b.store(totals, base + k, const(walk.ballot.how.start, walk.real))


def _score(walk: Walk, totals: str, base: Size) -> Callable[[Size], Expr]:
    """What the votes for a target came to; 0 where there were none."""
    how, b = walk.ballot.how, walk.b

    def score(k: Size) -> Expr:
        total = b.let(b.load(totals, base + k))
        if how.average:
            return total / walk.trees
        if how.start:
            return where(apply("eq", total, how.start), 0, total)
        return total

    return score


# Operators


def _walk(site: Site, forest: Forest, targets: int, how: str, real: Dtype) -> Walk:
    if how not in AGGREGATES:
        site.refuse(f"aggregate_function {how!r} is unknown")
    votes = forest.votes
    if not len(forest.roots):
        site.refuse("there are no trees")
    if ((votes.targets < 0) | (votes.targets >= targets)).any():
        site.refuse(f"a leaf votes for a target outside {targets}")
    if not np.isfinite(votes.weights).all():
        site.refuse("a leaf's weight is not finite")
    return Walk(site, forest, Ballot(site, forest, targets, AGGREGATES[how]), real)


def _real(site: Site, *columns: Array) -> Dtype:
    """Doubles where the input or anything in the trees is of doubles."""
    double = site.dtype(0) == "f64" or any(column.dtype == np.float64 for column in columns)
    return "f64" if double else "f32"


def _grown(site: Site, prefix: str) -> tuple[Forest, Dtype]:
    nodes = named_forest(site.call, prefix)
    real = _real(site, nodes.value, nodes.votes.weights)
    return grow(nodes, np.float64 if real == "f64" else np.float32), real


def _base(site: Site, targets: int) -> tuple[float, ...]:
    tensor = site.call.attr("base_values_as_tensor")
    given = site.call.attr("base_values", ()) if tensor is None else tensor.numpy()
    if len(given) not in (0, 1, targets):
        site.refuse(f"{len(given)} base values for {targets} targets")
    return tuple(float(value) for value in given)


def _with_base(site: Site, base: tuple[float, ...], real: Dtype) -> Callable[[Expr, Size], Expr]:
    if not base:
        return lambda score, k: score
    value = numbers(site, base, const(0, real))
    return lambda score, k: score + value(k)


def _regressor(site: Site) -> None:
    call = site.call
    targets = call.int_attr("n_targets", 1)
    forest, real = _grown(site, "target")
    walk = _walk(site, forest, targets, call.str_attr("aggregate_function", "SUM"), real)
    transform = call.str_attr("post_transform", "NONE")
    add = _with_base(site, _base(site, targets), real)

    def finish(row: Size, score: Callable[[Size], Expr]) -> None:
        store_scores(site, transform, row, targets, lambda k: cast(add(score(k), k), "f32"))

    _vote(walk, finish)


def _tree_ensemble(site: Site) -> None:
    call = site.call
    targets = call.int_attr("n_targets", 1)
    nodes = numbered_forest(call)
    real = _real(site, nodes.value, nodes.votes.weights)
    forest = grow(nodes, np.float64 if real == "f64" else np.float32)
    code = call.int_attr("aggregate_function", 1)
    names = ("AVERAGE", "SUM", "MIN", "MAX")
    how = names[code] if 0 <= code < len(names) else str(code)
    walk = _walk(site, forest, targets, how, real)
    code = call.int_attr("post_transform", 0)
    transform = TRANSFORMS[code] if 0 <= code < len(TRANSFORMS) else str(code)
    kept: Dtype = "f64" if site.out_dtype() == "f64" else "f32"

    def finish(row: Size, score: Callable[[Size], Expr]) -> None:
        store_scores(site, transform, row, targets, lambda k: cast(score(k), kept))

    _vote(walk, finish)


def _classifier(site: Site) -> None:
    call = site.call
    labels = call.ints_attr("classlabels_int64s") or ()
    if not labels:
        site.refuse("the classes have no labels of integers")
    forest, real = _grown(site, "class")
    targets = len(labels)
    transform = call.str_attr("post_transform", "NONE")
    base = _base(site, targets)
    # Two base values are two scores, also where only the first class has votes.
    single = targets <= 2 and len(base) < 2 and set(forest.votes.targets.tolist()) == {0}
    walk = _walk(site, forest, 1 if single else targets, "SUM", real)
    add = _with_base(site, base, real)
    if single:
        probable = bool((forest.votes.weights >= 0).all())
        _vote(walk, _binary(site, labels, probable, transform, add))
        return

    def finish(row: Size, score: Callable[[Size], Expr]) -> None:
        def based(k: Size) -> Expr:
            return add(score(k), k)

        store_labels(site, labels, row, largest_score(site, targets, based))
        store_scores(site, transform, row, targets, lambda k: cast(based(k), "f32"), 1)

    _vote(walk, finish)


def _binary(
    site: Site,
    labels: tuple[int, ...],
    probable: bool,
    transform: str,
    add: Callable[[Expr, Size], Expr],
) -> Finish:
    """One score decides between two labels, or for and against a single one.

    Weights that are all positive are probabilities of the second label; else the score's sign decides.
    """
    b = site.b
    one = transform == "PROBIT" or (transform == "NONE" and probable)

    def finish(row: Size, score: Callable[[Size], Expr]) -> None:
        second = b.let(add(score(0), 0))
        chosen = cast(second > (0.5 if probable else 0.0), "i64")
        store_labels(site, labels if len(labels) == 2 else (0, *labels), row, chosen)
        first = b.let(cast((1 - second) if one else -second, "f32"))
        second_score = b.let(cast(second, "f32"))
        if len(labels) == 1:
            store_scores(site, transform, row, 1, lambda k: second_score, 1)
            return
        pair = b.array("f32", 2)
        b.put(pair, 0, first)
        b.put(pair, 1, second_score)
        store_scores(site, transform, row, 2, lambda k: b.element(pair, k), 1)

    return finish


TREE_ENSEMBLE = Nest(_tree_ensemble, reads_once=True)
TREE_ENSEMBLE_CLASSIFIER = Nest(_classifier, reads_once=True)
TREE_ENSEMBLE_REGRESSOR = Nest(_regressor, reads_once=True)
