"""Trees, linear models and feature transforms in programs over torch and JAX answer as the reference backend does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sx
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.errors import UnsupportedError

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")

ML = "ai.onnx.ml"
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
X = np.array(
    [[0.5, -1.0, 2.0], [0.25, 0.5, np.nan], [-3.0, np.nan, 0.5], [0.0, 0.0, 0.0], [4.0, 1.5, -2.0]],
    np.float32,
)


def _by_torch(model: onnx.ModelProto, x: Any) -> list[Any]:
    found = sx.to_torch(model)(torch.from_numpy(x))
    return [one.detach().numpy() for one in (found if isinstance(found, tuple) else (found,))]


def _by_jax(model: onnx.ModelProto, x: Any) -> list[Any]:
    function, parameters = sx.to_jax(model)
    found = jax.jit(function)(parameters, x)
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


def _agree(model: onnx.ModelProto, x: Any = X) -> None:
    names = [port.name for port in model.graph.output]
    feeds = {model.graph.input[0].name: x}
    wanted = compile_model(sx.load(model)).run(feeds, names, Guard())
    for way in (_by_torch, _by_jax):
        for one, other in zip(way(model, x), wanted, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def _model(
    operator: str, outputs: int = 1, *, x: Any = X, version: int = 3, **attributes: Any
) -> onnx.ModelProto:
    names = ["y", "z"][:outputs]
    node = helper.make_node(operator, ["x"], names, domain=ML, **attributes)
    kinds = (TensorProto.INT64, TensorProto.FLOAT)[2 - outputs :]
    if operator == "LabelEncoder" and "values_int64s" in attributes:
        kinds = (TensorProto.INT64,)
    ports = [
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in zip(names, kinds, strict=True)
    ]
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    given = helper.make_tensor_value_info("x", kind, ["n", *x.shape[1:]])
    graph = helper.make_graph([node], "g", [given], ports)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(ML, version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _trees(prefix: str, targets: int) -> dict[str, Any]:
    """A tree of two levels for each mode, with missing values on either side; votes for several targets."""
    nodes: dict[str, list[Any]] = {
        f"nodes_{name}": []
        for name in (
            "treeids",
            "nodeids",
            "featureids",
            "modes",
            "values",
            "truenodeids",
            "falsenodeids",
            "missing_value_tracks_true",
        )
    }
    votes: dict[str, list[Any]] = {
        f"{prefix}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")
    }
    for tree, mode in enumerate(MODES):
        rows = [
            (0, tree % 3, mode, 0.5, 1, 2, tree % 2),
            (1, (tree + 1) % 3, mode, 0.0, 3, 4, (tree + 1) % 2),
            *((leaf, 0, "LEAF", 0.0, 0, 0, 0) for leaf in (2, 3, 4)),
        ]
        for node, feature, kind, value, yes, no, missing in rows:
            row = (tree, node, feature, kind, value, yes, no, missing)
            for column, one in zip(nodes.values(), row, strict=True):
                column.append(one)
        for leaf in (2, 3, 4):
            weight = ((tree * 3 + leaf) % 7 - 3) / 4
            for column, one in zip(
                votes.values(), (tree, leaf, (tree + leaf) % targets, weight), strict=True
            ):
                column.append(one)
    return {**nodes, **votes}


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN"])
def test_every_kind_of_branch(how: str) -> None:
    settings = _trees("target", 2)
    _agree(_model("TreeEnsembleRegressor", n_targets=2, aggregate_function=how, **settings))


@pytest.mark.parametrize(
    ("labels", "transform"),
    [
        ([0, 1, 2], "SOFTMAX_ZERO"),
        ([4, 2, 9], "NONE"),
        ([5, 3], "LOGISTIC"),
        ([0, 1], "NONE"),
        ([7], "SOFTMAX"),
    ],
)
def test_classes_of_trees(labels: list[int], transform: str) -> None:
    targets = 3 if len(labels) == 3 else 1
    _agree(
        _model(
            "TreeEnsembleClassifier",
            2,
            classlabels_int64s=labels,
            post_transform=transform,
            base_values=[0.125] * targets,
            **_trees("class", targets),
        )
    )


def test_doubles_and_positive_votes_of_two_classes() -> None:
    settings = _trees("class", 1)
    settings["class_weights"] = np.abs(settings["class_weights"]).tolist()
    _agree(_model("TreeEnsembleClassifier", 2, classlabels_int64s=[0, 1], **settings))
    names = ("nodes_values", "class_weights")
    for name in names:
        array = np.array(settings.pop(name), np.float64)
        settings[f"{name}_as_tensor"] = numpy_helper.from_array(array)
    x = X.astype(np.float64)
    model = _model("TreeEnsembleClassifier", 2, x=x, classlabels_int64s=[0, 1], **settings)
    wanted = compile_model(sx.load(model)).run({"x": x}, ["y", "z"], Guard())
    for one, other in zip(_by_torch(model, x), wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(UnsupportedError, match="jax_enable_x64"):
        sx.to_jax(model)


def test_sets_of_members() -> None:
    """TreeEnsemble of ai.onnx.ml 5: x[0] in {0, 4} else x[1] < 0.5."""
    _agree(
        _model(
            "TreeEnsemble",
            version=5,
            n_targets=2,
            aggregate_function=1,
            post_transform=2,
            tree_roots=[0],
            nodes_modes=numpy_helper.from_array(np.array([6, 1], np.uint8)),
            nodes_featureids=[0, 1],
            nodes_splits=numpy_helper.from_array(np.array([0.0, 0.5], np.float32)),
            nodes_truenodeids=[0, 1],
            nodes_trueleafs=[1, 1],
            nodes_falsenodeids=[1, 2],
            nodes_falseleafs=[0, 1],
            membership_values=numpy_helper.from_array(np.array([0.0, 4.0, np.nan], np.float32)),
            leaf_targetids=[0, 1, 0],
            leaf_weights=numpy_helper.from_array(np.array([1.0, 2.0, -3.0], np.float32)),
        )
    )


FULL = np.nan_to_num(X, nan=0.75)
WEIGHTS = [0.5, -1.0, 2.0, 1.5, 0.25, -0.75, -2.0, 1.0, 0.125]
WHOLE = np.array([[1, 2, 9], [2, 4, 1]], np.int64)


@pytest.mark.parametrize(
    ("operator", "x", "settings"),
    [
        ("Scaler", FULL, {"offset": [0.5, 1.0, -1.0], "scale": [2.0]}),
        ("Scaler", WHOLE, {"offset": [1.0], "scale": [2.0, 0.5, 1.0]}),
        ("Imputer", X, {"imputed_value_floats": [1, 2, 3.0], "replaced_value_float": np.nan}),
        ("Imputer", WHOLE, {"imputed_value_int64s": [7], "replaced_value_int64": 2}),
        ("Binarizer", FULL, {"threshold": 0.5}),
        ("Normalizer", FULL, {"norm": "MAX"}),
        ("Normalizer", FULL, {"norm": "L1"}),
        ("Normalizer", FULL, {"norm": "L2"}),
        ("OneHotEncoder", WHOLE[:, 0], {"cats_int64s": [2, 5, 1]}),
        ("LabelEncoder", WHOLE, {"keys_int64s": [1, 9, 1], "values_floats": [0.5, 2.5, 1.5]}),
        (
            "LabelEncoder",
            X,
            {"keys_floats": [0.5, np.nan], "values_int64s": [3, 4], "default_int64": 9},
        ),
        (
            "LinearRegressor",
            FULL,
            {"coefficients": WEIGHTS, "intercepts": [1, 2, 3.0], "targets": 3},
        ),
        ("LinearRegressor", FULL, {"coefficients": WEIGHTS[:3], "post_transform": "LOGISTIC"}),
    ],
)
def test_features_and_values(operator: str, x: Any, settings: dict[str, Any]) -> None:
    _agree(_model(operator, x=x, **settings), x)


@pytest.mark.parametrize(
    ("labels", "transform"), [([4, 2, 7], "SOFTMAX"), ([0, 1], "LOGISTIC"), ([3, 1], "NONE")]
)
def test_linear_classes(labels: list[int], transform: str) -> None:
    count = 3 if len(labels) == 3 else 1
    settings = {"coefficients": WEIGHTS[: 3 * count], "intercepts": [0.1] * count}
    _agree(
        _model(
            "LinearClassifier",
            2,
            x=FULL,
            classlabels_ints=labels,
            post_transform=transform,
            **settings,
        ),
        FULL,
    )


VECTORS = [0.5, 1.0, -1.0, 0.25, 2.0, 0.75, -0.5, 0.125, 1.5, 1.0, -2.0, 0.5]  # of four


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_values_of_machines(kernel: str) -> None:
    shared = {"kernel_type": kernel, "kernel_params": [0.25, 0.5, 3.0], "support_vectors": VECTORS}
    values = {"coefficients": [0.5, -1.0, 2.0, 0.75], "rho": [0.25], "n_supports": 4}
    _agree(_model("SVMRegressor", x=FULL, **shared, **values), FULL)


@pytest.mark.parametrize(
    ("labels", "counts", "rho"), [([4, 2, 7], [2, 1, 1], [0.1, -0.2, 0.3]), ([0, 1], [2, 2], [0.1])]
)
def test_classes_of_machines(labels: list[int], counts: list[int], rho: list[float]) -> None:
    settings = {
        "kernel_type": "RBF",
        "kernel_params": [0.25, 0.5, 3.0],
        "support_vectors": VECTORS,
        "coefficients": [1.0, 0.5, -1.0, -0.25, -0.5, 2.0, 1.0, -1.5][: 4 * len(labels) - 4],
        "vectors_per_class": counts,
    }
    _agree(_model("SVMClassifier", 2, x=FULL, classlabels_ints=labels, rho=rho, **settings), FULL)


def test_columns_by_number() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]>
        agraph (float[n, 3] x) => (float[n, 2] y) {
            places = Constant<value = int64[2] {2, 0}>()
            y = ai.onnx.ml.ArrayFeatureExtractor(x, places)
        }""")
    _agree(model, FULL)


def test_votes_train_and_branches_do_not() -> None:
    module = sx.to_torch(_model("TreeEnsembleRegressor", n_targets=2, **_trees("target", 2)))
    assert [name for name, _ in module.named_parameters()] == ["votes"]
    module(torch.from_numpy(X)).sum().backward()
    assert module.votes.grad.abs().sum() > 0
    assert len(module.source.splitlines()) < 80


def _texts() -> dict[str, Any]:
    return {"classlabels_strings": ["a", "b", "c"], **_trees("class", 3)}


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (
            lambda: _model("ZipMap", x=FULL, classlabels_int64s=[0, 1, 2]),
            "a dictionary for each row",
        ),
        (lambda: _model("OneHotEncoder", x=WHOLE, cats_int64s=[1], zeros=0), "stops at what is no"),
        (lambda: _model("TreeEnsembleClassifier", 2, **_texts()), "no type STRING"),
    ],
)
def test_refusals(model: Callable[[], onnx.ModelProto], why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        sx.to_torch(model())


def test_names_of_modules_are_left_alone() -> None:
    """A weight called as a method of nn.Module is has another name in the program."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        agraph (float[2] x) => (float[2] y) <float[2] children = {1, 2}> { y = Add(x, children) }""")
    assert sx.to_torch(model)(torch.ones(2)).tolist() == [2, 3]
