from __future__ import annotations

import time

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from tests.unit.backends.reference.models import floats, run_node, run_text

from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.errors import DeadlineError, LimitError, StructureError

HEAD = '<ir_version: 9, opset_import: ["": 17, "my": 1]> '
FUNCTION = '<domain: "my", opset_import: ["": 17, "my": 1]> '


def test_a_function_takes_the_attributes_of_its_call() -> None:
    text = (
        HEAD
        + "g (float[2] x) => (float[2] y, float[2] z) { y = my.scale <by = 3.0> (x) z = my.scale <by = 5.0> (x) }"
        + '<domain: "my", opset_import: ["": 17]> scale <by> (a) => (c)'
        + " { k = Constant <value_float : float = @by> () c = Mul(a, k) }"
    )
    y, z = run_text(text, floats(1, 2))
    assert y.tolist() == [3, 6]
    assert z.tolist() == [5, 10]


def test_an_attribute_left_out_takes_the_function_default() -> None:
    text = (
        HEAD
        + "g (float[3] x) => (float[3] y) { y = my.leaky (x) }"
        + '<domain: "my", opset_import: ["": 17]> leaky <slope: float = 0.5> (a) => (c)'
        + " { c = LeakyRelu <alpha: float = @slope> (a) }"
    )
    assert run_text(text, floats(-2, 0, 2))[0].tolist() == [-1, 0, 2]


def test_a_reference_reaches_into_subgraphs_and_inner_functions() -> None:
    text = (
        HEAD
        + "g (bool c, float[2] x) => (float[2] y) { y = my.outer <k = 0.25> (c, x) }"
        + FUNCTION
        + "outer <k> (c, a) => (r) {"
        + " r = If(c) <then_branch = t () => (u) { u = my.inner <slope: float = @k> (a) },"
        + " else_branch = e () => (v) { v = Identity(a) }> }"
        + FUNCTION
        + "inner <slope> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }"
    )
    assert run_text(text, np.array(True), floats(-4, 4))[0].tolist() == [-1, 4]


def test_an_attribute_without_value_is_left_to_the_operator() -> None:
    text = (
        HEAD
        + "g (float[2] x) => (float[2] y) { y = my.leaky (x) }"
        + '<domain: "my", opset_import: ["": 17]> leaky <slope> (a) => (c)'
        + " { c = LeakyRelu <alpha: float = @slope> (a) }"
    )
    np.testing.assert_allclose(run_text(text, floats(-1, 1))[0], [-0.01, 1], rtol=1e-6)


def test_optional_inputs_of_a_function_may_be_left_out() -> None:
    text = (
        HEAD
        + "g (float[3] x, float high) => (float[3] y) { y = my.bound (x, , high) }"
        + '<domain: "my", opset_import: ["": 17]> bound (a, low, high) => (c) { c = Clip(a, low, high) }'
    )
    assert run_text(text, floats(-9, 0, 9), np.float32(1))[0].tolist() == [-9, 0, 1]


def function(name: str, nodes: list[onnx.NodeProto]) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    return helper.make_function("my", name, ["a"], ["z"], nodes, imports)


def calling(entry: str, functions: list[onnx.FunctionProto]) -> ir.Model:
    graph = helper.make_graph(
        [helper.make_node(entry, ["x"], ["y"], domain="my")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=9)
    return ir.from_proto(model)


def twice(depth: int) -> list[onnx.FunctionProto]:
    """f0 negates; each other calls the one before it twice."""
    functions = [function("f0", [helper.make_node("Neg", ["a"], ["z"])])]
    for level in range(1, depth):
        inner = f"f{level - 1}"
        nodes = [
            helper.make_node(inner, ["a"], ["b"], domain="my"),
            helper.make_node(inner, ["b"], ["z"], domain="my"),
        ]
        functions.append(function(f"f{level}", nodes))
    return functions


def test_functions_that_double_compile_once_each_and_run_under_the_deadline() -> None:
    program = compile_model(calling("f40", twice(41)))
    with pytest.raises(DeadlineError):
        program.run({"x": floats(1)}, ["y"], Guard(deadline=time.monotonic() + 0.2))


def test_functions_that_double_give_the_right_answer() -> None:
    program = compile_model(calling("f5", twice(6)))
    assert program.run({"x": floats(3)}, ["y"], Guard())[0].tolist() == [3]


def test_functions_nested_too_deep_are_refused() -> None:
    chain = [function("f0", [helper.make_node("Neg", ["a"], ["z"])])]
    chain += [
        function(f"f{i}", [helper.make_node(f"f{i - 1}", ["a"], ["z"], domain="my")])
        for i in range(1, 300)
    ]
    with pytest.raises(LimitError, match="deep"):
        compile_model(calling("f299", chain))


def test_a_function_that_calls_itself_is_refused() -> None:
    loop = [
        function("f", [helper.make_node("g", ["a"], ["z"], domain="my")]),
        function("g", [helper.make_node("f", ["a"], ["z"], domain="my")]),
    ]
    with pytest.raises(StructureError, match="calls itself"):
        compile_model(calling("f", loop))


def test_an_operator_can_run_by_the_body_that_the_standard_gives_it() -> None:
    x = floats(-4, -1, 0, 1, 4)
    expected = x * np.clip(x / 6 + 0.5, 0, 1)
    np.testing.assert_allclose(run_node("HardSwish", 14, x), expected, rtol=1e-6)


def test_a_body_that_depends_on_types_is_built_for_each() -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 21]> g (float[N, 2, M] x, float[2] s) => (float[N, 2, M] y)'
        " { y = GroupNormalization <num_groups = 1> (x, s, s) }"
    )
    for width in (2, 3):
        x = np.arange(2 * width, dtype=np.float32).reshape(1, 2, width)
        (y,) = run_text(text, x, floats(1, 1))
        expected = (x - x.mean()) / np.sqrt(x.var() + 1e-5) + 1
        np.testing.assert_allclose(y, expected, rtol=1e-5)
