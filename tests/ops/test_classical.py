"""The feature transforms, linear models and support vectors of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_interpreted, run_reference

import sardonyx as sx
from sardonyx.errors import RunError
from sardonyx.ops.lowering import NotNative

ML = "ai.onnx.ml"
RNG = np.random.default_rng(0)
X = RNG.standard_normal((7, 5)).astype(np.float32)
WHOLE = RNG.integers(-3, 4, (4, 3))


@dataclass(frozen=True)
class MlCase(Case):
    """A case whose outputs have the types that onnx infers or, where it infers none, the operator's own."""

    def model(self) -> onnx.ModelProto:
        proto = super().model()
        kinds = [np.dtype(np.float32)]
        if self.outputs == 2:
            kinds = [np.dtype(np.int64), *kinds]
        elif self.op in ("ArrayFeatureExtractor", "Binarizer", "Imputer"):
            assert self.inputs[0] is not None
            kinds = [self.inputs[0].dtype]
        for value, kind in zip(proto.graph.output, kinds, strict=True):
            if not value.type.tensor_type.elem_type:
                value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(kind)
        return proto


def ml(
    op: str, inputs: list[np.ndarray], attributes: Mapping[str, Any], outputs: int = 1, **more: Any
) -> Case:
    return MlCase(op, inputs, attributes, outputs, domain=ML, domain_version=4, **more)


def fails(case: Case) -> None:
    """Reference, interpreter and compiled code all stop with a RunError."""
    model = sx.load(case.model())
    plan = plan_of(model)
    with pytest.raises(RunError):
        run_reference(model, case.feeds())
    for run in (run_interpreted, run_compiled):
        with pytest.raises(RunError):
            run(model, plan, case.feeds())


# Features


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("attributes", [{}, {"offset": [0.5], "scale": [1.0, 2, 3, 4, 5]}])
def test_scaler(attributes: dict[str, Any], symbolic: bool) -> None:
    agree(ml("Scaler", [X], attributes, symbolic=symbolic))


@pytest.mark.parametrize("dtype", ["float64", "int64", "int32"])
def test_scaler_of_every_type(dtype: str) -> None:
    agree(ml("Scaler", [(X * 9).astype(dtype)], {"offset": [0.5], "scale": [3.0]}))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_binarizer(dtype: str) -> None:
    agree(ml("Binarizer", [(X * 9).astype(dtype)], {"threshold": 0.5}))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("wanted", [0.0, float("nan")])
@pytest.mark.parametrize("values", [[7.0], [1.0, 2.0, 3.0, 4.0, 5.0]])
def test_imputer(values: list[float], wanted: float, symbolic: bool) -> None:
    x = np.where(X > 0.5, wanted, X).astype(np.float32)
    attributes = {"imputed_value_floats": values, "replaced_value_float": wanted}
    agree(ml("Imputer", [x], attributes, symbolic=symbolic))


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_imputer_of_integers(dtype: str) -> None:
    attributes = {"imputed_value_int64s": [4, 5, 6], "replaced_value_int64": 1}
    agree(ml("Imputer", [WHOLE.astype(dtype)], attributes))


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "float64"])
def test_normalizer(norm: str, dtype: str) -> None:
    """Rows of zeros stay."""
    x = (X * 4).astype(dtype)
    x[2] = 0
    agree(ml("Normalizer", [x], {"norm": norm}, symbolic=dtype == "float32"))
    agree(ml("Normalizer", [x[0]], {"norm": norm}))
    agree(ml("Normalizer", [x[:0]], {"norm": norm}))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("shape", [(2,), (1, 3), (0,)])
def test_array_feature_extractor(shape: tuple[int, ...], symbolic: bool) -> None:
    indices = RNG.integers(0, 5, shape)
    for x in (X, X[0], np.stack([X, -X])):
        agree(ml("ArrayFeatureExtractor", [x, indices], {}, symbolic=symbolic))


@pytest.mark.parametrize("index", [-1, 5])
def test_features_outside(index: int) -> None:
    fails(ml("ArrayFeatureExtractor", [X, np.array([0, index])], {}))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64"])
def test_one_hot_encoder(dtype: str, symbolic: bool) -> None:
    attributes = {"cats_int64s": [2, -1, 0]}
    agree(ml("OneHotEncoder", [WHOLE.astype(dtype)], attributes, symbolic=symbolic))


def test_one_hot_encoder_of_strangers() -> None:
    attributes = {"cats_int64s": [0, 1], "zeros": 0}
    agree(ml("OneHotEncoder", [np.array([1, 0, 1])], attributes))
    fails(ml("OneHotEncoder", [np.array([1, 2])], attributes))


@pytest.mark.parametrize("widths", [None, [3, 5], [2, 7]])
def test_feature_vectorizer(widths: list[int] | None) -> None:
    attributes = {} if widths is None else {"inputdimensions": widths}
    agree(ml("FeatureVectorizer", [X[:4, :3], X[:4]], attributes))
    agree(ml("FeatureVectorizer", [(X[:4, :3] * 3).astype(np.int64), WHOLE], {}))


# Dictionaries


@pytest.mark.parametrize("count", [1, 2, 5, 8, 13])
def test_label_encoder(count: int) -> None:
    keys = RNG.permutation(20)[:count].tolist()
    attributes = {"keys_int64s": keys, "values_floats": RNG.standard_normal(count).tolist()}
    agree(ml("LabelEncoder", [np.arange(-1, 22)], attributes, symbolic=True))
    agree(ml("LabelEncoder", [np.arange(-1, 22)], attributes | {"default_float": 0.5}))


def test_label_encoder_of_floats() -> None:
    """NaN is a key; of equal keys the last counts."""
    x = np.float32([1.5, np.nan, -0.0, 2, np.inf, -np.inf, 0.1])
    for keys in ([1.5, 0.0, np.inf, 1.5], [0.1, np.nan, 1.5, -np.inf], [np.nan] * 4):
        attributes = {"keys_floats": keys, "values_int64s": [4, 3, 2, 1], "default_int64": 7}
        agree(ml("LabelEncoder", [x], attributes))


def test_label_encoder_of_tensors() -> None:
    tensor = onnx.numpy_helper.from_array
    attributes = {
        "keys_tensor": tensor(np.array([1, 5, 3], np.int64)),
        "values_tensor": tensor(np.array([7, -2, 300], np.int16)),
        "default_tensor": tensor(np.array([9], np.int16)),
    }
    agree(ml("LabelEncoder", [np.arange(7)], attributes))


# Linear models


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(targets: int, dtype: str) -> None:
    x = (X * 5).astype(dtype)
    attributes = {"coefficients": RNG.standard_normal(5 * targets).tolist(), "targets": targets}
    agree(ml("LinearRegressor", [x], attributes, symbolic=dtype == "float32"))
    attributes |= {"intercepts": RNG.standard_normal(targets).tolist()}
    agree(ml("LinearRegressor", [x], attributes | {"post_transform": "SOFTMAX"}))


def test_linear_regressor_of_the_wrong_width() -> None:
    case = ml("LinearRegressor", [X], {"coefficients": [1.0, 2.0]}, symbolic=True)
    fails(case)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("labels", [[0, 1, 2], [5, 3, 9]])
def test_linear_classifier(labels: list[int], transform: str) -> None:
    attributes = {
        "coefficients": RNG.standard_normal(15).tolist(),
        "intercepts": [0.1, 0.2, 0.3],
        "classlabels_ints": labels,
        "post_transform": transform,
    }
    agree(ml("LinearClassifier", [X], attributes, 2))


@pytest.mark.parametrize("labels", [[4, 2], [6]])
def test_linear_classifier_of_one_score(labels: list[int]) -> None:
    attributes = {
        "coefficients": RNG.standard_normal(5).tolist(),
        "intercepts": [0.1],
        "classlabels_ints": labels,
    }
    agree(ml("LinearClassifier", [X], attributes | {"post_transform": "LOGISTIC"}, 2))


# Support vectors

KERNELS = [
    ("LINEAR", [0.0, 0.0, 0.0]),
    ("POLY", [0.5, 0.25, 3.0]),
    ("RBF", [0.3, 0.0, 0.0]),
    ("SIGMOID", [0.2, 0.1, 0.0]),
]


@pytest.mark.parametrize(("kernel", "params"), KERNELS)
def test_svm_regressor(kernel: str, params: list[float]) -> None:
    attributes = {
        "kernel_type": kernel,
        "kernel_params": params,
        "n_supports": 4,
        "support_vectors": RNG.standard_normal(20).tolist(),
        "coefficients": RNG.standard_normal(4).tolist(),
        "rho": [0.3],
    }
    agree(ml("SVMRegressor", [X], attributes))
    agree(ml("SVMRegressor", [X], attributes | {"one_class": 1}))


def test_svm_regressor_without_supports() -> None:
    attributes = {"coefficients": RNG.standard_normal(5).tolist(), "rho": [0.3]}
    agree(ml("SVMRegressor", [X], attributes, symbolic=True))


@pytest.mark.parametrize(("kernel", "params"), KERNELS)
@pytest.mark.parametrize("per_class", [[2, 3], [1, 2, 2]])
def test_svm_classifier(per_class: list[int], kernel: str, params: list[float]) -> None:
    classes = len(per_class)
    attributes = {
        "kernel_type": kernel,
        "kernel_params": params,
        "vectors_per_class": per_class,
        "support_vectors": RNG.standard_normal(25).tolist(),
        "coefficients": RNG.standard_normal(5 * (classes - 1)).tolist(),
        "rho": RNG.standard_normal(classes * (classes - 1) // 2).tolist(),
        "classlabels_ints": [3, 1, 2][:classes],
    }
    agree(ml("SVMClassifier", [X], attributes, 2))


def test_svm_classifier_of_linear_scores() -> None:
    attributes = {
        "coefficients": RNG.standard_normal(15).tolist(),
        "rho": [0.2],
        "classlabels_ints": [0, 1, 2],
        "post_transform": "LOGISTIC",
    }
    agree(ml("SVMClassifier", [X], attributes, 2))


# Neighbours and refusals


def test_pointwise_neighbours_are_fused() -> None:
    """Scaler, Imputer and Binarizer are one kernel; a scaler is written into the linear model's sums."""
    nodes = [
        helper.make_node("Imputer", ["x"], ["a"], domain=ML, imputed_value_floats=[1.0]),
        helper.make_node("Scaler", ["a"], ["b"], domain=ML, offset=[0.5], scale=[2.0]),
        helper.make_node("Abs", ["b"], ["c"]),
        helper.make_node("Binarizer", ["c"], ["y"], domain=ML, threshold=1.0),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", 1, ["n", 5])], [value("y", 1, ["n", 5])])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid(ML, 3)]
    model = sx.load(helper.make_model(graph, opset_imports=imports, ir_version=10))
    plan = plan_of(model)
    assert len(plan.steps) == 1
    (expected,) = run_reference(model, {"x": X})
    np.testing.assert_array_equal(run_compiled(model, plan, {"x": X})[0], expected)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (ml("Scaler", [X], {"scale": [1.0, 2.0]}), "2 numbers for 5 features"),
        (ml("Imputer", [X], {"imputed_value_int64s": [1]}), "no values to impute"),
        (ml("Normalizer", [X], {"norm": "L3"}), "L3"),
        (ml("LinearRegressor", [X], {"coefficients": [1.0] * 4}), "4 features"),
        (ml("LabelEncoder", [WHOLE], {"keys_int64s": [1], "values_int64s": [1, 2]}), "1 keys"),
    ],
)
def test_what_has_no_native_code(case: Case, reason: str) -> None:
    with pytest.raises(NotNative, match=reason):
        plan_of(sx.load(case.model()))
