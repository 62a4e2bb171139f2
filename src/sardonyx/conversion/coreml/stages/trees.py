"""Tree ensembles: the nodes of the file, checked, and what becomes of the sums of their leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.stage import Column, Stage, stage
from sardonyx.conversion.coreml.stages.classes import (
    against_first,
    by_score,
    class_labels,
    classified,
    largest,
)
from sardonyx.conversion.trees.forest import (
    AT_MOST,
    BELOW,
    EQUAL,
    LEAF,
    Ensemble,
    Head,
    Tree,
    grounded,
    tree_of_rows,
)
from sardonyx.conversion.trees.operator import tree_attributes

__all__: list[str] = []

# Of TreeNodeBehavior: the test, and whether its answer is turned around.
_TESTS = {
    0: (AT_MOST, False),
    1: (BELOW, False),
    2: (BELOW, True),
    3: (AT_MOST, True),
    4: (EQUAL, False),
    5: (EQUAL, True),
}
_LEAF = 6
_NONE, _SOFTMAX, _LOGISTIC, _ZERO_REFERENCE = range(4)  # TreeEnsemblePostEvaluationTransform
_MOST_DIMENSIONS = 1 << 20


@stage("treeEnsembleRegressor")
def regressor(stage: Stage) -> dict[str, Column]:
    scores = _scores(stage)
    transform = stage.params.postEvaluationTransform
    if transform == _LOGISTIC:
        scores = stage.op("Sigmoid", scores)
    elif transform == _SOFTMAX:
        scores = stage.op("Softmax", scores, axis=1)
    elif transform != _NONE:
        raise stage.refuse(f"a regressor with the transform {transform} has no meaning.")
    return stage.transformed(scores)


@stage("treeEnsembleClassifier")
def classifier(stage: Stage) -> dict[str, Column]:
    """One sum for each class, or one of the second of two classes."""
    labels, transform = class_labels(stage), stage.params.postEvaluationTransform
    scores = _scores(stage)
    width = stage.width(Column(scores))
    if transform == _ZERO_REFERENCE and width == len(labels) - 1:
        return classified(stage, *against_first(stage, scores))
    if width == 1 and len(labels) == 2 and transform in (_NONE, _LOGISTIC):
        logistic = transform == _LOGISTIC
        second = stage.op("Sigmoid", scores) if logistic else scores
        return classified(stage, *by_score(stage, scores, second, 0.0 if logistic else 0.5))
    if width == len(labels) and transform in (_NONE, _SOFTMAX):
        soft = stage.op("Softmax", scores, axis=1) if transform == _SOFTMAX else scores
        return classified(stage, soft, largest(stage, scores))
    raise stage.refuse(
        f"{width} sums and the transform {transform} have no meaning for {len(labels)} labels."
    )


def _scores(stage: Stage) -> ir.Value:
    """The sums, (rows, dimensions): compared and added as doubles, then float32."""
    params = stage.params.treeEnsemble
    count, base = int(params.numPredictionDimensions), list(params.basePredictionValue)
    if not 0 < count <= _MOST_DIMENSIONS or len(base) != count:
        raise stage.refuse(f"it has {len(base)} base values for {count} sums.")
    x = stage.features()
    features = stage.width(Column(x))
    by_tree: dict[int, dict[int, Any]] = {}
    for node in params.nodes:
        tree = by_tree.setdefault(int(node.treeId), {})
        if int(node.nodeId) in tree:
            raise stage.refuse(f"tree {node.treeId} has two nodes {node.nodeId}.")
        tree[int(node.nodeId)] = node
    trees = tuple(_tree(stage, number, nodes, features, count) for number, nodes in by_tree.items())
    ensemble = Ensemble(features, trees, count, np.array(base), Head("values"), "float64")
    attributes = tree_attributes(grounded(ensemble), count, np.dtype(np.float64))
    return stage.ml("TreeEnsembleRegressor", x, **attributes)


def _tree(stage: Stage, number: int, nodes: Mapping[int, Any], features: int, count: int) -> Tree:
    order = _from_the_root(stage, number, nodes)
    row_of = {node: row for row, node in enumerate(order)}
    rows: list[tuple[float, ...]] = []
    votes: list[tuple[int, int, float]] = []
    for row, node in enumerate(nodes[each] for each in order):
        if node.nodeBehavior == _LEAF:
            rows.append((LEAF, 0, 0.0, 0, 0, False))
            votes += [(row, target, weight) for target, weight in _votes(stage, node, count)]
            continue
        test, turned = _TESTS[node.nodeBehavior]
        if node.branchFeatureIndex >= features or np.isnan(node.branchFeatureValue):
            raise stage.refuse(
                f"node {node.nodeId} of tree {number} compares feature {node.branchFeatureIndex} of {features} "
                f"with {node.branchFeatureValue}."
            )
        ways = (row_of[node.trueChildNodeId], row_of[node.falseChildNodeId])
        yes, no = reversed(ways) if turned else ways
        missing_yes = node.missingValueTracksTrueChild != turned
        rows.append((test, node.branchFeatureIndex, node.branchFeatureValue, yes, no, missing_yes))
    return tree_of_rows(rows, votes)


def _votes(stage: Stage, node: Any, count: int) -> Iterable[tuple[int, float]]:
    """What a leaf adds to each sum; to the first one nothing, where it says nothing."""
    found: dict[int, float] = {}
    for info in node.evaluationInfo:
        if info.evaluationIndex >= count:
            raise stage.refuse(
                f"leaf {node.nodeId} of tree {node.treeId} adds to sum {info.evaluationIndex} of {count}."
            )
        index = int(info.evaluationIndex)
        found[index] = found.get(index, 0.0) + info.evaluationValue
    return (found or {0: 0.0}).items()


def _from_the_root(stage: Stage, number: int, nodes: Mapping[int, Any]) -> list[int]:
    """The nodes' numbers, the root's first.

    Raises:
        ConvertError: they are no tree.
    """
    parents: dict[int, int] = {}
    for node in nodes.values():
        if node.nodeBehavior == _LEAF:
            continue
        if node.nodeBehavior not in _TESTS:
            raise stage.refuse(f"node {node.nodeId} of tree {number} has an unknown behavior.")
        for child in (int(node.trueChildNodeId), int(node.falseChildNodeId)):
            if child not in nodes or child in parents:
                why = "does not exist" if child not in nodes else "has two parents"
                raise stage.refuse(f"node {child} of tree {number} {why}.")
            parents[child] = int(node.nodeId)
    roots = [node for node in nodes if node not in parents]
    if len(roots) != 1:
        raise stage.refuse(f"tree {number} has {len(roots)} roots.")
    order = list(roots)
    for node in order:
        if nodes[node].nodeBehavior != _LEAF:
            order += [int(nodes[node].trueChildNodeId), int(nodes[node].falseChildNodeId)]
    if len(order) != len(nodes):
        raise stage.refuse(f"tree {number} has nodes that its root does not lead to.")
    return order
