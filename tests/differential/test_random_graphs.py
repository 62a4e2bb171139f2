"""Random graphs and what they found: our answers against onnxruntime's and the standard's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import sardonyx as sx

Array = np.ndarray[Any, np.dtype[Any]]


def run_node(op: str, opset: int, *arrays: Array, domain: str = "", **attributes: Any) -> Any:
    names = [f"x{index}" for index in range(len(arrays))]
    schema = onnx.defs.get_schema(op, opset, domain)
    outputs = [f"y{index}" for index in range(schema.min_output)]
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, arrays, strict=True)
    ]
    graph = helper.make_graph([node], "g", infos, [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)])
    values = sx.Session(model).run_all(dict(zip(names, arrays, strict=True)))
    return values[outputs[-1]]


@pytest.mark.parametrize("start", [-9, -4, 0])
def test_a_slice_backwards_starts_no_earlier_than_the_first_element(start: int) -> None:
    x = np.arange(3, dtype=np.float32)
    bounds = [np.array([value]) for value in (start, -(2**63), 0, -1)]
    assert run_node("Slice", 13, x, *bounds).tolist() == [0]


def test_one_gathered_element_is_a_scalar() -> None:
    y = run_node("GatherND", 13, np.arange(6).reshape(2, 3), np.array([1, -1]))
    assert y.shape == ()
    assert y == 5


def test_an_expanded_scalar_stays_a_scalar() -> None:
    y = run_node("Expand", 13, np.array(2.5, np.float32), np.array([], np.int64))
    assert y.shape == ()


def test_resize_of_opset_10_rounds_up_where_it_shrinks() -> None:
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4)
    scales = np.array([1, 1, 0.6, 0.6], np.float32)
    assert run_node("Resize", 10, x, scales).tolist() == [[[[1, 3]]]]


def test_two_base_values_are_two_scores() -> None:
    scores = run_node(
        "TreeEnsembleClassifier",
        3,
        np.zeros((1, 1), np.float32),
        domain="ai.onnx.ml",
        base_values=[3.5, 0.25],
        classlabels_strings=["d", "b"],
        class_treeids=[0],
        class_nodeids=[0],
        class_ids=[0],
        class_weights=[0.5],
        nodes_treeids=[0],
        nodes_nodeids=[0],
        nodes_featureids=[0],
        nodes_modes=["LEAF"],
        nodes_values=[0.0],
        nodes_truenodeids=[0],
        nodes_falsenodeids=[0],
    )
    assert scores.tolist() == [[4.0, 0.25]]
