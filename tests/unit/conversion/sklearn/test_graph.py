"""Tensors that are written down as numpy is: each formula beside numpy's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sardonyx.runtime.session import Session

pytest.importorskip("sklearn")

from scipy import special

from sardonyx.conversion.sklearn.estimators.binning import interpolate, place_among
from sardonyx.conversion.sklearn.estimators.elementary import expm1, log1p, squared_distances
from sardonyx.conversion.sklearn.estimators.normal import error_function, normal_quantile
from sardonyx.conversion.sklearn.graph import ML, ML_OPSET, OPSET, Graph, Tensor

Formula = Callable[[Tensor], Tensor]


def computed(formula: Formula, x: np.ndarray) -> Any:
    graph = Graph(x.dtype)
    answer = formula(Tensor(graph, "x", x.dtype, (None, *x.shape[1:])))
    kinds = [helper.np_dtype_to_tensor_dtype(kind) for kind in (x.dtype, answer.dtype)]
    proto = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "g",
            [helper.make_tensor_value_info("x", kinds[0], ["batch", *x.shape[1:]])],
            [onnx.ValueInfoProto(name=answer.name)],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
        ir_version=10,
    )
    proto.graph.output[0].type.tensor_type.elem_type = kinds[1]
    return Session(proto).run(None, {"x": x})[0]


SMALL = np.array([[-1e-12, 1e-300, 1e-9, 0.0, 0.3, 5.0, 700.0, -0.9]])
POINTS = np.array([0.0, 1.0, 1.0, 2.5])
HEIGHTS = np.array([0.0, 3.0, 4.0, -1.0])


@pytest.mark.parametrize(
    ("formula", "reference", "x"),
    [
        (log1p, np.log1p, SMALL),
        (expm1, np.expm1, SMALL),
        (error_function, special.erf, np.linspace(-8, 8, 400).reshape(1, -1)),
        (
            normal_quantile,
            special.ndtri,
            np.concatenate([np.linspace(1e-6, 1 - 1e-6, 300), [0.02, 0.98]]).reshape(1, -1),
        ),
        (lambda x: x.logsumexp(1), lambda x: special.logsumexp(x, axis=1), SMALL),
        (lambda x: 1.0 - x / 2.0, lambda x: 1.0 - x / 2.0, SMALL),
        (lambda x: x.columns([2, 0]), lambda x: x[:, [2, 0]], SMALL),
        (
            lambda x: interpolate(x, POINTS, HEIGHTS),
            lambda x: np.interp(x, POINTS, HEIGHTS),
            np.array([[-1.0], [0.0], [0.5], [1.0], [2.0], [2.5], [9.0]]),
        ),
        (
            lambda x: place_among(x, POINTS),
            lambda x: np.searchsorted(POINTS, x, side="right"),
            np.array([[-1.0], [0.0], [0.5], [1.0], [2.5]]),
        ),
    ],
)
def test_formula(formula: Formula, reference: Callable[[Any], Any], x: np.ndarray) -> None:
    np.testing.assert_allclose(computed(formula, x), reference(x), rtol=1e-13, atol=0)


def test_distances_of_data_far_from_zero() -> None:
    x = np.random.default_rng(0).normal(size=(5, 3)) + 1e4
    expected = ((x[:, None] - x[None]) ** 2).sum(-1)
    np.testing.assert_allclose(computed(lambda t: squared_distances(t, x), x), expected, atol=1e-9)


def test_equal_nodes_and_constants_are_written_once() -> None:
    graph = Graph(np.float32)
    x = Tensor(graph, "x", np.dtype(np.float32), (None, 3))
    first, second = x * 2.0, x * 2.0
    assert first.name == second.name
    assert len(graph.nodes) == len(graph.constants) == 1


def test_numbers_take_the_type_of_what_they_meet() -> None:
    graph = Graph(np.float32)
    x = Tensor(graph, "x", np.dtype(np.float32), (None, 3))
    answer = np.ones(3) - x @ np.ones((3, 2), np.float64).sum(axis=1, keepdims=True)
    assert answer.dtype == np.float32
    assert {c.data_type for c in graph.constants} == {onnx.TensorProto.FLOAT}
