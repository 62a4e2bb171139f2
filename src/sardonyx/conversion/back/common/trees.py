"""Tree ensembles: their nodes as tables, walked by all rows at once.

leaf = reached_leaves(x, self.roots, self.feature, self.threshold, None, None, self.ways, 10, False)
scores = torch.sum(take(self.votes, leaf, 0), dim=(1,), keepdim=False)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.back.common.scores import binary, features, largest, transformed
from sardonyx.conversion.back.language import Answer, Entry
from sardonyx.conversion.back.step import Step
from sardonyx.conversion.back.support.trees import reached_leaves
from sardonyx.ops.lowering import NotNative
from sardonyx.ops.lowerings.forest import Array, Forest, Nodes, grow, named_forest, numbered_forest
from sardonyx.ops.lowerings.scores import TRANSFORMS

__all__ = ["ENTRIES"]

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_STARTS = {"MIN": np.inf, "MAX": -np.inf}
_MOST_VOTES = 1 << 28  # of all nodes for all targets


def _nodes(step: Step, prefix: str) -> Nodes:
    try:
        return named_forest(step.call, prefix) if prefix else numbered_forest(step.call)
    except NotNative as error:
        step.refuse(str(error))


def _real(step: Step, nodes: Nodes) -> ir.DataType:
    """Doubles where the input or anything in the trees is of doubles."""
    wide = step.dtype(0) == ir.DataType.DOUBLE or np.float64 in (
        nodes.value.dtype,
        nodes.votes.weights.dtype,
    )
    return ir.DataType.DOUBLE if wide else ir.DataType.FLOAT


def _sums(step: Step, nodes: Nodes, real: ir.DataType, targets: int, how: str = "SUM") -> str:
    """What the votes of all trees come to, (rows, targets)."""
    try:
        forest = grow(nodes, real.numpy())
    except NotNative as error:
        step.refuse(str(error))
    if not len(forest.roots):
        step.refuse("there are no trees")
    width = step.shape(0)[-1]
    asked = int(forest.columns.max(initial=-1)) + 1
    if not isinstance(width, int) or width < asked:
        step.refuse(f"a node asks for feature {asked - 1} of {width}")
    leaf = step.let("leaf", _walk(step, forest, features(step, real)))
    votes = step.table(
        _votes(step, forest, targets, how).astype(real.numpy()), "votes", trained=True
    )
    given = f"{step.help('take')}({votes}, {leaf}, 0)"
    if how in _STARTS:
        phrase = "amax" if how == "MAX" else "amin"
        total = step.let("total", step.say(phrase, given, "(1,)", False))
        none = f"{total} == {'-' if how == 'MAX' else ''}float('inf')"
        return step.let("scores", step.say("where", none, f"{total} * 0", total))
    total = step.say("sum", given, "(1,)", False)
    if how == "AVERAGE":
        total = f"{total} / {len(forest.roots)}"
    return step.let("scores", total)


def _walk(step: Step, forest: Forest, x: str) -> str:
    leaves, left = forest.leaves, forest.steps[1::2].astype(np.int64)
    column = np.where(leaves, 0, forest.steps[0::2])
    empty = not len(forest.columns)
    feature = np.zeros(len(column), np.int64) if empty else forest.columns[column].astype(np.int64)
    missing = np.zeros(len(column), bool) if empty else ~np.isnan(forest.fills[column]) & ~leaves
    words = [
        step.table(forest.roots.astype(np.int64), "roots"),
        step.table(feature, "feature"),
        step.table(forest.threshold, "threshold"),
        "None" if forest.low is None else step.table(forest.low, "low"),
        step.table(missing, "missing") if missing.any() else "None",
        step.table(np.stack([left, np.where(leaves, left, left + 1)]), "ways"),
        str(int(forest.depths.max(initial=0))),
        str(forest.strict),
    ]
    return f"{step.use(reached_leaves)}({x}, {', '.join(words)})"


def _votes(step: Step, forest: Forest, targets: int, how: str) -> Array:
    """(nodes, targets): what each node gives to each target."""
    votes = forest.votes
    if ((votes.targets < 0) | (votes.targets >= targets)).any():
        step.refuse(f"a leaf votes for a target outside {targets}")
    if forest.count * targets > _MOST_VOTES:
        step.refuse(f"its leaves have votes for {targets} targets, too many for one table")
    combine = {"MIN": np.minimum, "MAX": np.maximum}.get(how, np.add)
    given = np.full(
        (max(forest.rows.max(initial=0), votes.rows.max(initial=0)) + 1, targets),
        _STARTS.get(how, 0.0),
    )
    combine.at(given, (votes.rows, votes.targets), votes.weights)
    table: Array = given[forest.rows]
    return table


def _base(step: Step, targets: int) -> Array:
    tensor = step.call.attr("base_values_as_tensor")
    given = step.call.attr("base_values", ()) if tensor is None else tensor.numpy()
    if len(given) not in (0, 1, targets):
        step.refuse(f"{len(given)} base values for {targets} targets")
    return np.asarray(given)


def _with_base(step: Step, scores: str, base: Array, real: ir.DataType) -> str:
    if not len(base):
        return scores
    return step.let("scores", f"{scores} + {step.table(base.astype(real.numpy()), 'base')}")


def _plain(step: Step, scores: str, real: ir.DataType, wanted: ir.DataType) -> str:
    return scores if real == wanted else step.let("scores", step.cast(scores, wanted))


def _regressor(step: Step) -> Answer:
    call = step.call
    targets, nodes = call.int_attr("n_targets", 1), _nodes(step, "target")
    real, how = _real(step, nodes), step.word("aggregate_function", "SUM", *_AGGREGATES)
    scores = _with_base(step, _sums(step, nodes, real, targets, how), _base(step, targets), real)
    scores = _plain(step, scores, real, ir.DataType.FLOAT)
    return transformed(step, scores, call.str_attr("post_transform", "NONE"))


def _ensemble(step: Step) -> Answer:
    call = step.call
    nodes, code = _nodes(step, ""), call.int_attr("aggregate_function", 1)
    change = call.int_attr("post_transform", 0)
    if not 0 <= code < len(_AGGREGATES) or not 0 <= change < len(TRANSFORMS):
        step.refuse(f"aggregate_function {code} or post_transform {change} is not known")
    real, targets = _real(step, nodes), call.int_attr("n_targets", 1)
    scores = _sums(step, nodes, real, targets, _AGGREGATES[code])
    wanted = step.outputs[0].dtype
    scores = _plain(step, scores, real, real if wanted is None else wanted)
    return transformed(step, scores, TRANSFORMS[change])


def _classifier(step: Step) -> Answer:
    call = step.call
    labels = call.ints_attr("classlabels_int64s") or ()
    if not labels:
        step.refuse("the classes have no labels of integers")
    nodes, transform = _nodes(step, "class"), call.str_attr("post_transform", "NONE")
    real, targets = _real(step, nodes), len(labels)
    base, votes = _base(step, targets), nodes.votes
    # Two base values are two scores, also where only the first class has votes.
    single = targets <= 2 and len(base) < 2 and set(votes.targets.tolist()) == {0}
    scores = _with_base(step, _sums(step, nodes, real, 1 if single else targets), base, real)
    if not single:
        label = largest(step, labels, scores)
        return [label, transformed(step, _plain(step, scores, real, ir.DataType.FLOAT), transform)]
    # Weights that are all positive are probabilities of the second label; else the score's sign decides.
    probable = bool((votes.weights >= 0).all())
    one = transform == "PROBIT" or (transform == "NONE" and probable)
    above = f"{scores}[:, 0] > {0.5 if probable else 0}"
    second = _plain(step, scores, real, ir.DataType.FLOAT)
    return binary(step, labels, above, second, transform, one=one)


ENTRIES: Mapping[str, Entry] = {
    "TreeEnsemble": _ensemble,
    "TreeEnsembleRegressor": _regressor,
    "TreeEnsembleClassifier": _classifier,
}
