"""Tree ensembles: every kind of node, vote, aggregate and transform, over few rows and many."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.ops.harness import (
    Case,
    agree,
    close,
    plan_of,
    run_compiled,
    run_interpreted,
    run_reference,
)

import sardonyx as sx
from sardonyx.errors import RunError
from sardonyx.ops.lowering import NotNative

ML = "ai.onnx.ml"
FEATURES = 5
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def rows(count: int, seed: int = 1, missing: bool = True) -> np.ndarray:
    """Features that often meet a threshold exactly, with NaN and infinities among them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (count, FEATURES)).astype(np.float32) / 2
    if missing:
        x[rng.random(x.shape) < 0.1] = np.nan
        x[rng.random(x.shape) < 0.05] = np.inf
        x[rng.random(x.shape) < 0.05] = -np.inf
    return x


def forest(
    prefix: str,
    trees: int = 11,
    depth: int = 3,
    targets: int = 1,
    modes: list[str] = MODES[:1],
    tracks: bool = False,
    votes: int = 1,
    seed: int = 0,
) -> dict[str, Any]:
    """Random trees of up to `depth` levels, whose leaves vote for `votes` targets each."""
    rng = np.random.default_rng(seed)
    names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"]
    nodes: dict[str, list[Any]] = {f"nodes_{name}": [] for name in names}
    nodes["nodes_missing_value_tracks_true"] = []
    leaves: dict[str, list[Any]] = {
        f"{prefix}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")
    }
    for tree in range(trees):
        pending, made = [(0, 0)], 1
        while pending:
            number, level = pending.pop(0)
            leaf = level == depth or (level > 0 and rng.random() < 0.2)
            children = (0, 0) if leaf else (made, made + 1)
            if not leaf:
                pending += [(made, level + 1), (made + 1, level + 1)]
                made += 2
            mode = "LEAF" if leaf else str(rng.choice(modes))
            values = (tree, number, int(rng.integers(FEATURES)), float(rng.integers(-2, 3)) / 2)
            for name, value in zip(names, (*values, mode, *children), strict=True):
                nodes[f"nodes_{name}"].append(value)
            nodes["nodes_missing_value_tracks_true"].append(int(tracks and rng.random() < 0.5))
            for target in rng.permutation(targets)[:votes] if leaf else ():
                for name, value in zip(
                    ("treeids", "nodeids", "ids", "weights"),
                    (tree, number, int(target), float(np.float32(rng.standard_normal()))),
                    strict=True,
                ):
                    leaves[f"{prefix}_{name}"].append(value)
    return {**nodes, **leaves}


def regressor(x: np.ndarray, attributes: dict[str, Any], **more: Any) -> Case:
    targets = {"n_targets": 1} | attributes
    return Case("TreeEnsembleRegressor", [x], targets, domain=ML, domain_version=3, **more)


def classifier(x: np.ndarray, attributes: dict[str, Any], **more: Any) -> Case:
    return Case("TreeEnsembleClassifier", [x], attributes, 2, domain=ML, domain_version=3, **more)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 19])
def test_rows(count: int, symbolic: bool) -> None:
    agree(regressor(rows(count), forest("target"), symbolic=symbolic))


def test_a_block_of_many_rows_and_its_rest() -> None:
    x = rows(1100, missing=False)
    agree(regressor(x, forest("target", trees=2), symbolic=True), interpreted=False)


@pytest.mark.parametrize("tracks", [False, True])
@pytest.mark.parametrize(
    "modes", [[mode] for mode in MODES] + [MODES[:2], ["BRANCH_LT", "BRANCH_GTE"], MODES]
)
def test_modes(modes: list[str], tracks: bool) -> None:
    agree(regressor(rows(17), forest("target", modes=modes, tracks=tracks)))


@pytest.mark.parametrize("dtype", ["float64", "int64", "int32"])
def test_types_of_features(dtype: str) -> None:
    x = rows(9, missing=dtype == "float64").astype(dtype)
    agree(regressor(x, forest("target", modes=MODES, tracks=True)))


def test_trees_of_doubles() -> None:
    attributes = forest("target", modes=MODES[:4])
    for name in ("nodes_values", "target_weights"):
        values = np.array(attributes.pop(name)) + 1e-12
        attributes[f"{name}_as_tensor"] = onnx.numpy_helper.from_array(values, name)
    x = rows(9, missing=False).astype(np.float64)
    x[:4] += 1e-12
    agree(regressor(x, attributes))


@pytest.mark.parametrize("votes", [1, 2, 5])
@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_aggregates(how: str, votes: int) -> None:
    """Of 5 targets, a leaf votes for one, for some, or for all."""
    attributes = forest("target", trees=3, depth=2, targets=5, votes=votes)
    attributes |= {"n_targets": 5, "aggregate_function": how}
    agree(regressor(rows(10), attributes | {"base_values": [0.5, -1.0, 0.0, 2.0, 3.0]}))
    if votes == 2:
        agree(regressor(rows(3), attributes))


@pytest.mark.parametrize("transform", ["SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("targets", [1, 4])
def test_transforms(transform: str, targets: int) -> None:
    attributes = forest("target", trees=3, targets=targets, votes=max(targets - 1, 1))
    agree(regressor(rows(9), attributes | {"n_targets": targets, "post_transform": transform}))


def test_probit_of_probabilities() -> None:
    attributes = forest("target", trees=2, depth=2)
    count = len(attributes["target_weights"])
    attributes["target_weights"] = np.linspace(0.05, 0.45, count).tolist()
    agree(regressor(rows(9), attributes | {"post_transform": "PROBIT"}))


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("count", [3, 9])
def test_classes(transform: str, count: int) -> None:
    attributes = forest("class", targets=3, votes=2) | {"classlabels_int64s": [4, -1, 9]}
    agree(classifier(rows(count), attributes | {"post_transform": transform}, symbolic=True))
    based = attributes | {"base_values": [0.1, 0.5, -0.2]}
    agree(classifier(rows(count), based | {"post_transform": transform}))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("labels", [[0, 1], [7, 3], [5]])
@pytest.mark.parametrize("base", [[], [0.25]])
def test_two_classes_by_one_score(
    transform: str, positive: bool, labels: list[int], base: list[float]
) -> None:
    attributes = forest("class", trees=4) | {"classlabels_int64s": labels}
    if positive:
        attributes["class_weights"] = [abs(w) / 4 for w in attributes["class_weights"]]
    attributes |= {"post_transform": transform} | ({"base_values": base} if base else {})
    agree(classifier(rows(10), attributes))


def test_two_classes_with_two_base_values() -> None:
    attributes = forest("class", trees=4) | {"classlabels_int64s": [0, 1]}
    agree(classifier(rows(10), attributes | {"base_values": [0.5, 0.75]}))


def test_one_row_of_features() -> None:
    case = regressor(rows(1)[0], forest("target"))
    proto = case.model()
    proto.graph.output[0].type.tensor_type.elem_type = 1  # onnx infers none of a vector
    model = sx.load(proto)
    plan = plan_of(model)
    (expected,) = run_reference(model, case.feeds())
    for run in (run_interpreted, run_compiled):
        close(run(model, plan, case.feeds())[0], expected, run.__name__)


def test_a_tree_that_is_a_leaf_beside_deep_ones() -> None:
    attributes = forest("target", trees=1, depth=0)
    deep = forest("target", trees=3, depth=20, seed=3)
    chains = {
        name: [
            *attributes[name],
            *([v + 1 for v in deep[name]] if "treeids" in name else deep[name]),
        ]
        for name in deep
    }
    for count in (2, 9):
        agree(regressor(rows(count), chains), interpreted=False)


def test_features_that_nobody_asks_for_are_not_copied() -> None:
    attributes = forest("target", trees=2, depth=2)
    attributes["nodes_featureids"] = [2 * (f % 2) + 1 for f in attributes["nodes_featureids"]]
    agree(regressor(rows(9), attributes, symbolic=True))


# TreeEnsemble


def test_tree_ensemble_of_sets() -> None:
    """x0 in {0, 1, 1.5} goes to a leaf, as do others after x1 in {-1}."""
    for dtype, tracks in ((np.float32, 0), (np.float64, 1), (np.float16, 1)):
        tensor = onnx.numpy_helper.from_array
        members = np.array([0, 1, 1.5, np.nan, -1, np.nan], dtype)
        attributes = {
            "n_targets": 2,
            "aggregate_function": 1,
            "post_transform": 2,
            "tree_roots": [0],
            "nodes_modes": tensor(np.array([6, 6], np.uint8)),
            "nodes_featureids": [0, 1],
            "nodes_splits": tensor(np.array([0, 0], dtype)),
            "nodes_truenodeids": [0, 1],
            "nodes_trueleafs": [1, 1],
            "nodes_falsenodeids": [1, 2],
            "nodes_falseleafs": [0, 1],
            "nodes_missing_value_tracks_true": [tracks, 1 - tracks],
            "membership_values": tensor(members),
            "leaf_targetids": [0, 1, 0],
            "leaf_weights": tensor(np.array([1, -2, 3], dtype)),
        }
        agree(Case("TreeEnsemble", [rows(40).astype(dtype)], attributes, domain=ML))


# Neighbours


def test_pointwise_neighbours_are_fused() -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node(
            "TreeEnsembleRegressor", ["a"], ["b"], domain=ML, n_targets=1, **forest("target")
        ),
        helper.make_node("Abs", ["b"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("x", 1, ["n", FEATURES])], [value("y", 1, ["n", 1])]
    )
    imports = [helper.make_opsetid("", 20), helper.make_opsetid(ML, 3)]
    model = sx.load(helper.make_model(graph, opset_imports=imports, ir_version=10))
    plan = plan_of(model)
    assert len(plan.steps) == 1
    for count in (2, 12):
        feeds = {"x": rows(count)}
        (expected,) = run_reference(model, feeds)
        np.testing.assert_allclose(run_interpreted(model, plan, feeds)[0], expected, 1e-4, 1e-5)
        np.testing.assert_allclose(run_compiled(model, plan, feeds)[0], expected, 1e-4, 1e-5)


def test_a_row_has_the_same_bits_alone_and_among_others_on_any_threads() -> None:
    case = regressor(rows(70), forest("target", trees=30), symbolic=True)
    model = sx.load(case.model())
    plan = plan_of(model)
    (whole,) = run_compiled(model, plan, case.feeds(), threads=2)
    (alone,) = run_compiled(model, plan, case.feeds(), threads=1)
    np.testing.assert_array_equal(whole, alone)
    for row in (0, 33, 69):
        (single,) = run_compiled(model, plan, {"x0": rows(70)[row : row + 1]})
        np.testing.assert_array_equal(single[0], whole[row])


# Refusals


def test_too_few_features() -> None:
    case = regressor(rows(9)[:, :2], forest("target"), symbolic=True)
    model = sx.load(case.model())
    plan = plan_of(model)
    for run in (run_interpreted, run_compiled):
        with pytest.raises(RunError, match="past the 2 given"):
            run(model, plan, case.feeds())
    with pytest.raises(RunError):
        run_reference(model, case.feeds())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"nodes_truenodeids": [1, 0, 0]}, "circle"),
        ({"nodes_values": [float("nan"), 0.0, 0.0]}, "NaN"),
        ({"target_weights": [float("inf"), 0.0]}, "finite"),
        ({"target_ids": [0, 1]}, "outside 1"),
        ({"nodes_featureids": [7, 0, 0]}, "feature 7 of 5"),
        ({"aggregate_function": "MEDIAN"}, "MEDIAN"),
        ({"post_transform": "SQUARE"}, "SQUARE"),
        ({"nodes_modes": ["BRANCH_XOR", "LEAF", "LEAF"]}, "mode"),
    ],
)
def test_what_has_no_native_code(change: dict[str, Any], reason: str) -> None:
    attributes = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
    } | change
    if reason == "circle":
        attributes["nodes_modes"] = ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"]
        attributes["nodes_truenodeids"] = [1, 1, 0]
    with pytest.raises(NotNative, match=reason):
        plan_of(sx.load(regressor(rows(3), attributes).model()))
