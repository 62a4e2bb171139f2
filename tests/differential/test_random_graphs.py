"""Random graphs and what they found: our answers against onnxruntime's and the standard's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import sardonyx as sx

Array = np.ndarray[Any, np.dtype[Any]]


def run_node(
    op: str, opset: int, *arrays: Array, domain: str = "", outputs: int = 1, **attributes: Any
) -> Any:
    """The last of a node's outputs."""
    names = [f"x{index}" for index in range(len(arrays))]
    results = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, arrays, strict=True)
    ]
    graph = helper.make_graph([node], "g", infos, [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)])
    values = sx.Session(model).run_all(dict(zip(names, arrays, strict=True)))
    return values[results[-1]]


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


def test_softsign_of_a_scalar() -> None:
    y = run_node("Softsign", 22, np.array(-1.5, np.float32))
    assert y.shape == ()
    assert y == np.float32(-0.6)


@pytest.mark.parametrize(("end", "sizes"), [(-5, []), (-4, []), (-1, [2, 3, 4]), (9, [2, 3, 4, 5])])
def test_the_end_of_shape_is_clamped(end: int, sizes: list[int]) -> None:
    assert run_node("Shape", 15, np.zeros((2, 3, 4, 5), np.int8), end=end).tolist() == sizes


@pytest.mark.parametrize("to", [onnx.TensorProto.INT4, onnx.TensorProto.UINT4])
def test_casts_to_four_bits_round(to: int) -> None:
    x = np.array([0.4, 0.5, 1.5, 3.7], np.float32)
    assert run_node("Cast", 21, x, to=to).astype(np.int8).tolist() == [0, 0, 2, 4]


@pytest.mark.parametrize("flat", [False, True])
def test_the_product_of_attention_is_not_capped(flat: bool) -> None:
    rng = np.random.default_rng(3)
    q, k, v = (rng.normal(size=(2, heads, 3, 4)).astype(np.float32) for heads in (4, 2, 2))
    expected = 0.7 * q @ np.repeat(k, 2, axis=1).swapaxes(2, 3)
    heads = {}
    if flat:
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(2, 3, -1) for x in (q, k, v))
        heads = {"q_num_heads": 4, "kv_num_heads": 2}
    product = run_node("Attention", 24, q, k, v, outputs=4, softcap=0.5, scale=0.7, **heads)
    np.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-6)


def test_two_base_values_are_two_scores() -> None:
    scores = run_node(
        "TreeEnsembleClassifier",
        3,
        np.zeros((1, 1), np.float32),
        domain="ai.onnx.ml",
        outputs=2,
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
