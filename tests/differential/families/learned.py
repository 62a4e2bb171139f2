"""The operators of ai.onnx.ml: trees, linear models, support vectors, and what prepares features."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper
from tests.differential.graphs import ML, Array, Builder, family

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
COLUMNS = ["treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids"]


def rows(b: Builder, features: int, dtypes: tuple[str, ...] = ("float32", "float64")) -> Array:
    """Halves, so that they meet the splits exactly."""
    dtype = b.pick(dtypes)
    return np.round(b.array(dtype, [b.integer(1, 4), features]) * 2).astype(dtype) / np.array(
        2, dtype
    )


def labels(b: Builder, count: int, integers: str) -> dict[str, Any]:
    if b.chance():
        return {integers: (b.rng.permutation(9)[:count] - 2).tolist()}
    return {"classlabels_strings": list("dbca")[:count]}


def forest(b: Builder, features: int, targets: int, votes: str) -> dict[str, Any]:
    """Trees of which every leaf votes for every target; onnxruntime forgets those without a vote."""
    nodes: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    mode = b.pick([*MODES, None])

    def grow(tree: int, depth: int) -> int:
        place = len(nodes["nodeids"])
        here = nodes["treeids"].count(tree)
        leaf = depth == 0 or b.chance(0.25)
        kind = "LEAF" if leaf else mode or b.pick(MODES)
        split = (tree, here, b.integer(0, features - 1), kind, b.integer(-4, 4) / 2, 0, 0)
        for name, value in zip(COLUMNS, split, strict=True):
            nodes[name].append(value)
        if leaf:
            for target in range(targets):
                vote = (tree, here, target, round(b.rng.uniform(-2, 2), 2))
                for name, value in zip(leaves, vote, strict=True):
                    leaves[name].append(value)
        else:
            nodes["truenodeids"][place] = grow(tree, depth - 1)
            nodes["falsenodeids"][place] = grow(tree, depth - 1)
        return here

    for tree in range(b.integer(1, 4)):
        grow(tree, b.integer(0, 3))
    named = {f"nodes_{name}": values for name, values in nodes.items()}
    return named | {f"{votes}_{name}": values for name, values in leaves.items()}


@family
def regress_trees(b: Builder) -> None:
    b.version("TreeEnsembleRegressor", ML)
    features, targets = b.integer(1, 3), b.integer(1, 3)
    attributes = forest(b, features, targets, "target") | {"n_targets": targets}
    attributes |= b.some(aggregate_function=b.pick(["SUM", "AVERAGE", "MIN", "MAX"]))
    attributes |= b.some(base_values=b.array("float32", [targets]).tolist())
    if targets > 1:  # with one target onnxruntime leaves the score as it is
        attributes |= b.some(post_transform=b.pick(TRANSFORMS))
    x = b.put(rows(b, features, ("float32",)), False)
    b.node("TreeEnsembleRegressor", [x], domain=ML, **attributes)


@family
def classify_trees(b: Builder) -> None:
    b.version("TreeEnsembleClassifier", ML)
    features, classes = b.integer(1, 3), b.pick([1, 3, 4])
    attributes = forest(b, features, classes, "class")
    attributes |= labels(b, max(classes, 2), "classlabels_int64s")
    if classes == 1:  # one score for two labels
        attributes |= b.some(post_transform="LOGISTIC")
    else:
        attributes |= b.some(post_transform=b.pick(TRANSFORMS))
        attributes |= b.some(base_values=b.array("float32", [classes]).tolist())
    x = b.put(rows(b, features, ("float32", "float64", "int64", "int32")), False)
    b.node("TreeEnsembleClassifier", [x], 2, domain=ML, **attributes)


@family
def numbered_trees(b: Builder) -> None:
    b.ml = 5
    dtype = b.pick(["float32", "float64"])
    features, targets = b.integer(1, 3), b.integer(1, 3)
    nodes: list[
        list[Any]
    ] = []  # feature, mode, split, true, true is a leaf, false, false is a leaf
    weights: list[float] = []
    mode = b.pick([0, 1, 2, 3, 4, 5, None])

    def grow(depth: int) -> int:
        place = len(nodes)
        kind = b.integer(0, 5) if mode is None else mode
        nodes.append([b.integer(0, features - 1), kind, b.integer(-4, 4) / 2])
        for _ in range(2):
            if depth == 0 or b.chance(0.3):
                weights.append(round(b.rng.uniform(-2, 2), 2))
                nodes[place] += [len(weights) - 1, 1]
            else:
                nodes[place] += [grow(depth - 1), 0]
        return place

    roots = [grow(b.integer(0, 2)) for _ in range(b.integer(1, 3))]
    feature, modes, splits, yes, yes_leaf, no, no_leaf = map(list, zip(*nodes, strict=True))
    b.node(
        "TreeEnsemble",
        [b.put(rows(b, features, (dtype,)), False)],
        domain=ML,
        n_targets=targets,
        tree_roots=roots,
        nodes_featureids=feature,
        nodes_modes=numpy_helper.from_array(np.array(modes, np.uint8)),
        nodes_splits=numpy_helper.from_array(np.array(splits, dtype)),
        nodes_truenodeids=yes,
        nodes_trueleafs=yes_leaf,
        nodes_falsenodeids=no,
        nodes_falseleafs=no_leaf,
        leaf_targetids=b.integers(len(weights), 0, targets - 1),
        leaf_weights=numpy_helper.from_array(np.array(weights, dtype)),
        **b.some(aggregate_function=b.integer(0, 3)),
    )


@family
def linear(b: Builder) -> None:
    features, targets = b.integer(1, 3), b.integer(1, 4)
    attributes: dict[str, Any] = {
        "coefficients": b.array("float32", [targets * features]).tolist(),
        "intercepts": b.array("float32", [targets]).tolist(),
    }
    if targets > 1:
        attributes |= b.some(post_transform=b.pick(TRANSFORMS))
    if b.chance():
        x = b.put(b.array("float32", [3, features]), False)
        b.node("LinearRegressor", [x], domain=ML, targets=targets, **attributes)
        return
    if targets == 1:  # for one score that is not transformed, onnxruntime puts out 1 - s, s
        attributes["post_transform"] = "LOGISTIC"
    attributes |= labels(b, max(targets, 2), "classlabels_ints")
    x = b.put(b.array(b.pick(["float32", "float64", "int64"]), [3, features]), False)
    b.node("LinearClassifier", [x], 2, domain=ML, **attributes)


@family
def support_vectors(b: Builder) -> None:
    features, classes = b.integer(1, 3), b.pick([2, 3])
    kernel = b.pick(["LINEAR", "POLY", "RBF", "SIGMOID"])
    attributes = {"kernel_type": kernel, "kernel_params": [0.5, 0.2, 2.0]}
    x = b.put(b.array("float32", [b.integer(1, 4), features], -1, 1), False)
    per_class = b.integers(classes, 1, 2)
    count = sum(per_class)
    attributes["support_vectors"] = b.array("float32", [count * features], -1, 1).tolist()
    if b.chance():
        coefficients = b.array("float32", [count]).tolist()
        attributes |= {"n_supports": count, "coefficients": coefficients, "rho": [0.3]}
        b.node("SVMRegressor", [x], domain=ML, **attributes, **b.some(0.2, one_class=1))
        return
    pairs = classes * (classes - 1) // 2
    attributes |= {
        "vectors_per_class": per_class,
        "coefficients": b.array("float32", [count * (classes - 1)]).tolist(),
        "rho": b.array("float32", [pairs]).tolist(),
    }
    if b.chance(0.4):
        attributes |= {f"prob_{c}": b.array("float32", [pairs]).tolist() for c in "ab"}
    b.node(
        "SVMClassifier", [x], 2, domain=ML, **attributes, **labels(b, classes, "classlabels_ints")
    )


@family
def scale_features(b: Builder) -> None:
    op = b.pick(["Scaler", "Normalizer", "Binarizer", "Imputer", "FeatureVectorizer"])
    size, count = b.integer(1, 4), b.integer(1, 3)
    few = b.pick([1, size])
    x = b.array("float32" if op == "Binarizer" else b.pick(["float32", "int64"]), [count, size])
    if op == "Scaler":
        offset, scale = (b.array("float32", [few]).tolist() for _ in range(2))
        b.node(op, [b.put(x, False)], domain=ML, offset=offset, scale=scale)
    elif op == "Normalizer":
        b.node(op, [b.put(x, False)], domain=ML, norm=b.pick(["MAX", "L1", "L2"]))
    elif op == "Binarizer":
        b.node(op, [b.put(x, False)], domain=ML, **b.some(threshold=0.5))
    elif op == "FeatureVectorizer":
        widths = b.integers(b.integer(1, 3), 1, 3)
        parts = [b.put(b.array("float32", [count, width]), False) for width in widths]
        b.node(op, parts, domain=ML, inputdimensions=widths)
    elif x.dtype == np.int64:
        attributes = {"imputed_value_int64s": b.integers(few, 5, 9), "replaced_value_int64": 2}
        (y,) = b.node(op, [b.put(x, False)], domain=ML, **attributes)
        b.types[y] = "int64"
    else:
        missing = b.pick([float("nan"), 2.0])
        x = np.where(b.rng.random(x.shape) < 0.4, np.float32(missing), x)
        values = b.array("float32", [few]).tolist()
        attributes = {"imputed_value_floats": values, "replaced_value_float": missing}
        b.node(op, [b.put(x, False)], domain=ML, **attributes)


@family
def encode_features(b: Builder) -> None:
    op = b.pick(["OneHotEncoder", "LabelEncoder", "CategoryMapper", "ArrayFeatureExtractor"])
    words = np.array([b.pick("abcz") for _ in range(4)], object)
    numbers = b.rng.integers(1, 5, 4)
    if op == "OneHotEncoder":
        text = b.chance()
        cats = {"cats_strings": list("bac")} if text else {"cats_int64s": [3, 1, 2]}
        b.node(op, [b.put(words if text else numbers, False)], domain=ML, zeros=1, **cats)
    elif op == "CategoryMapper":
        pairs = {"cats_strings": list("abc"), "cats_int64s": [1, 2, 3]}
        defaults = b.some(default_string="?", default_int64=-9)
        b.node(op, [b.put(b.pick([words, numbers]), False)], domain=ML, **pairs, **defaults)
    elif op == "ArrayFeatureExtractor":
        x = b.array(b.pick(["float32", "int64"]), b.pick([[3, 4], [2, 3, 4]]))
        b.node(op, [b.put(x, False), b.put(b.rng.integers(0, 4, [2]))], domain=ML)
    else:
        b.ml = b.pick([2, 3, 4])
        keys = {"strings": list("abc"), "int64s": [1, 2, 3]}
        values = {"strings": list("xyz"), "int64s": [5, 6, 7], "floats": [0.5, 1.5, 2.5]}
        source, target = b.pick(list(keys)), b.pick(list(values))
        attributes = {f"keys_{source}": keys[source], f"values_{target}": values[target]}
        x = words if source == "strings" else numbers
        b.node(op, [b.put(x, False)], domain=ML, **attributes)
