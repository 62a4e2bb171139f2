"""Forests true to size: fully native, and our answers are onnxruntime's and scikit-learn's.

One session serves every number of rows: nothing is compiled anew.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import sardonyx as sx
from sardonyx.comparison.difference import differences

ML = "ai.onnx.ml"
FEATURES = 20
ROWS = (1, 7, 100, 10_000)
TREES, DEPTH = 200, 10


def features(rows: int, seed: int = 5, missing: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, FEATURES)).astype(np.float32)
    return np.where(rng.random(x.shape) < 0.05, np.float32(np.nan), x) if missing else x


def model(node: onnx.NodeProto, outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", FEATURES])
    graph = helper.make_graph([node], "forest", [x], outputs)
    imports = [helper.make_opsetid("", 20), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def exported(forest: Any, prefix: str) -> dict[str, list[Any]]:
    """The trees of scikit-learn, written as its converter does."""
    found: dict[str, list[Any]] = {}

    def add(group: str, **columns: np.ndarray) -> None:
        for name, column in columns.items():
            found.setdefault(f"{group}_{name}", []).extend(column.tolist())

    for number, estimator in enumerate(forest.estimators_):
        tree = estimator.tree_
        ids = np.arange(tree.node_count)
        leaf = tree.children_left < 0
        # The largest float32 that is not above the threshold decides the same for every float32.
        rounded = tree.threshold.astype(np.float32)
        above = rounded > tree.threshold
        rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
        add(
            "nodes",
            treeids=np.full(len(ids), number),
            nodeids=ids,
            featureids=np.where(leaf, 0, tree.feature),
            values=rounded,
            modes=np.where(leaf, "LEAF", "BRANCH_LEQ"),
            truenodeids=np.where(leaf, 0, tree.children_left),
            falsenodeids=np.where(leaf, 0, tree.children_right),
        )
        weights = tree.value[leaf][:, 0, :] / len(forest.estimators_)
        if weights.shape[1] == 2:
            weights = weights[:, 1:]  # of two classes, the second one's probability stands for both
        targets = weights.shape[1]
        add(
            prefix,
            treeids=np.full(weights.size, number),
            nodeids=np.repeat(ids[leaf], targets),
            ids=np.tile(np.arange(targets), int(leaf.sum())),
            weights=weights.reshape(-1),
        )
    return found


@cache
def fitted(classes: int) -> Any:
    """A forest over a function with products and steps in it; 0 classes are a regression."""
    x = features(2500, seed=1)
    score = x[:, 0] * x[:, 1] + np.sin(3 * x[:, 2]) + (x[:, 3] > 0.5)
    settings = {"n_estimators": TREES, "max_depth": DEPTH, "random_state": 0, "n_jobs": 2}
    if classes == 0:
        return RandomForestRegressor(**settings).fit(x, score)
    edges = np.quantile(score, np.arange(1, classes) / classes)
    return RandomForestClassifier(**settings).fit(x, np.digitize(score, edges))


def boosted() -> onnx.ModelProto:
    """What XGBoost writes: x < threshold, a default direction for NaN at each node, leaves of 300 trees."""
    rng = np.random.default_rng(3)
    depth, columns = 6, [f"nodes_{n}" for n in ("treeids", "nodeids", "featureids", "values")]
    columns += ["nodes_modes", "nodes_truenodeids", "nodes_falsenodeids"]
    columns += ["nodes_missing_value_tracks_true"]
    rows, votes = [], []
    for tree in range(300):
        for node in range(2 ** (depth + 1) - 1):
            level = (node + 1).bit_length() - 1
            if level == depth or (level > 3 and rng.random() < 0.1):
                rows.append((tree, node, 0, 0.0, "LEAF", 0, 0, 0))
                votes.append((tree, node, 0, float(np.float32(rng.standard_normal() / 10))))
                continue
            feature, threshold = int(rng.integers(FEATURES)), float(np.float32(rng.normal()))
            children = 2 * node + 1, 2 * node + 2
            rows.append(
                (tree, node, feature, threshold, "BRANCH_LT", *children, int(rng.integers(2)))
            )
    kept = _reachable(rows)
    attributes = dict(zip(columns, map(list, zip(*kept, strict=True)), strict=True))
    names = ["target_treeids", "target_nodeids", "target_ids", "target_weights"]
    alive = {(row[0], row[1]) for row in kept}
    votes = [vote for vote in votes if vote[:2] in alive]
    attributes |= dict(zip(names, map(list, zip(*votes, strict=True)), strict=True))
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain=ML,
        n_targets=1,
        base_values=[0.5],
        **attributes,
    )
    return model(node, [helper.make_tensor_value_info("y", 1, ["rows", 1])])


def _reachable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Nodes whose parents are all inner nodes."""
    inner = {(row[0], row[1]) for row in rows if row[4] != "LEAF"}
    kept = []
    for row in rows:
        node = row[1]
        while node and (row[0], (node - 1) // 2) in inner:
            node = (node - 1) // 2
        if node == 0:
            kept.append(row)
    return kept


def assert_agrees(proto: onnx.ModelProto, missing: bool = False) -> sx.Session:
    ours = sx.Session(proto)
    assert {placed.backend for placed in ours.placement} == {"native"}
    theirs = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for rows in ROWS:
        feeds = {"x": features(rows, missing=missing)}
        expected = theirs.run(None, feeds)
        for output, answer, wanted in zip(
            ours.outputs, ours.run(None, feeds), expected, strict=True
        ):
            assert rows == 1 or wanted.std() > 0.01, "an answer that is constant proves nothing"
            for difference in differences(output.name, answer, wanted):
                assert difference.ok, (rows, difference)
    return ours


@pytest.mark.parametrize("classes", [2, 3])
def test_random_forest_classifier(classes: int) -> None:
    forest = fitted(classes)
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain=ML,
        classlabels_int64s=list(range(classes)),
        **exported(forest, "class"),
    )
    outputs = [
        helper.make_tensor_value_info("label", onnx.TensorProto.INT64, ["rows"]),
        helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["rows", classes]),
    ]
    ours = assert_agrees(model(node, outputs))
    x = features(1000)
    label, scores = ours.run(None, {"x": x})
    np.testing.assert_array_equal(label, forest.predict(x))
    np.testing.assert_allclose(scores, forest.predict_proba(x), 1e-4, 1e-5)


def test_random_forest_regressor() -> None:
    forest = fitted(0)
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain=ML, n_targets=1, **exported(forest, "target")
    )
    ours = assert_agrees(model(node, [helper.make_tensor_value_info("y", 1, ["rows", 1])]))
    x = features(1000)
    np.testing.assert_allclose(ours.run(None, {"x": x})[0][:, 0], forest.predict(x), 1e-4, 1e-5)


@pytest.mark.parametrize("missing", [False, True])
def test_boosted_trees(missing: bool) -> None:
    assert_agrees(boosted(), missing)
