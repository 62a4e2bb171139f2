"""Products of one value with several matrices: one product where that leaves fewer nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.unit.passes.rules.table import operators, optimized, same

from sardonyx.model.load import load
from sardonyx.model.save import to_proto
from sardonyx.passes.optimize import Settings, optimize


def products(
    op: str,
    columns: tuple[int, ...],
    biases: tuple[bool, ...],
    *,
    opset: int = 17,
    shared: bool = False,
    more: tuple[onnx.NodeProto, ...] = (),
    **attributes: Any,
) -> onnx.ModelProto:
    """One product for each number of columns; shared: all with the first matrix."""
    random = np.random.default_rng(0)
    nodes, weights = [], []
    turned = attributes.get("transB", 0)
    for index, count in enumerate(columns):
        shape = (count, 4) if turned else (4, count)
        weights.append(
            numpy_helper.from_array(random.normal(size=shape).astype(np.float32), f"w{index}")
        )
        weights.append(
            numpy_helper.from_array(random.normal(size=count).astype(np.float32), f"b{index}")
        )
        used = "w0" if shared else f"w{index}"
        if op == "Gemm":
            inputs = ["x", used, f"b{index}"] if biases[index] else ["x", used]
            nodes.append(helper.make_node(op, inputs, [f"y{index}"], **attributes))
            continue
        nodes.append(
            helper.make_node(op, ["x", used], [f"p{index}" if biases[index] else f"y{index}"])
        )
        if biases[index]:
            nodes.append(helper.make_node("Add", [f"b{index}", f"p{index}"], [f"y{index}"]))
    rank = ["N", 4] if op == "Gemm" else ["N", "S", 4]
    outputs = [
        helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, [*rank[:-1], n])
        for i, n in enumerate(columns)
    ]
    graph = helper.make_graph(
        [*nodes, *more],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, rank)],
        outputs,
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


MERGED = {
    "with biases": (products("MatMul", (3, 3, 5), (True,) * 3), ["MatMul", "Add", "Split"]),
    "two with biases": (products("MatMul", (3, 3), (True, True)), ["MatMul", "Add", "Split"]),
    "some with biases": (products("MatMul", (3, 2, 5), (True, False, True)), ["MatMul", "Add", "Split"]),
    "three without": (products("MatMul", (3, 2, 5), (False,) * 3), ["MatMul", "Split"]),
    "an old opset": (products("MatMul", (3, 2, 5), (False,) * 3, opset=11), ["MatMul", "Split"]),
    "gemms": (products("Gemm", (3, 2, 5), (True, True, False)), ["Gemm", "Split"]),
    "turned gemms": (products("Gemm", (3, 2, 5), (True,) * 3, transB=1), ["Gemm", "Split"]),
}  # fmt: skip


@pytest.mark.parametrize("name", MERGED)
def test_merged(name: str) -> None:
    model, expected = MERGED[name]
    result = optimized(model)
    assert operators(result) == expected
    same(model, result, steps=16)


LEFT = {
    "nothing would be won": products("MatMul", (3, 2), (False, False)),
    "two gemms": products("Gemm", (3, 2), (True, True)),
    "a matrix that all read": products("MatMul", (3, 3, 3), (True, True, True), shared=True),
}


@pytest.mark.parametrize("name", LEFT)
def test_left(name: str) -> None:
    result = optimized(LEFT[name])
    assert "Split" not in operators(result)
    same(LEFT[name], result, steps=16)


def test_every_beginning_of_it_is_a_model() -> None:
    """A run that is stopped after any rewrite gives the same answers: a wrong one is found by halving."""
    model = products("MatMul", (3, 3, 5), (True, True, True))
    for limit in range(4):
        result = optimize(load(model), Settings(level=3, limit=limit))
        assert result.ledger.rewrites == limit
        onnx.checker.check_model(to_proto(result.model))
        same(model, result, steps=16)


def test_the_matrices_are_joined_when_they_are_read() -> None:
    """A model of many gigabytes is not copied to be rewritten."""
    result = optimized(products("MatMul", (3, 3, 5), (True, True, True)))
    joined = next(iter(result.model.graph)).inputs[1]
    assert joined is not None
    assert type(joined.const_value).__name__ == "LazyTensor"


def test_what_is_read_early_is_made_early() -> None:
    """The sum after the second product comes first, and has a reader before the sum after the first."""
    random = np.random.default_rng(3)
    names = ("w0", "w1", "b0", "b1")
    shapes = ((4, 3), (4, 5), (3,), (5,))
    weights = [
        numpy_helper.from_array(random.normal(size=shape).astype(np.float32), name)
        for name, shape in zip(names, shapes, strict=True)
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["p0"]),
        helper.make_node("MatMul", ["x", "w1"], ["p1"]),
        helper.make_node("Add", ["p1", "b1"], ["s1"]),
        helper.make_node("Relu", ["s1"], ["y1"]),
        helper.make_node("Add", ["p0", "b0"], ["y0"]),
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", "S", size])
        for name, size in (("y0", 3), ("y1", 5))
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "S", 4])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    result = to_proto(optimize(load(model), Settings(level=3)).model)
    onnx.checker.check_model(result, full_check=True)
    assert sorted(node.op_type for node in result.graph.node) == ["Add", "MatMul", "Relu", "Split"]
