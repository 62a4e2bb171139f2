"""The pass over a whole model: inputs, declarations, write-back, and size without fear."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from sardonyx.errors import ShapeError
from sardonyx.passes.shapes import infer_shapes
from sardonyx.sizes import symbol


def model(text: str) -> ir.Model:
    return ir.from_onnx_text(text)


def named(found: ir.Model, name: str) -> ir.Value:
    values = [*found.graph.inputs, *(v for n in found.graph.all_nodes() for v in n.outputs)]
    return next(value for value in values if value.name == name)


def shape_text(found: ir.Model, name: str) -> str:
    return str(infer_shapes(found).of(named(found, name)))


HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'


def test_inputs_give_the_symbols() -> None:
    found = model(HEAD + "g (float[batch, ?, 3] x, int64[2] n) => (float[a,b,c] y) { y = Relu(x) }")
    shapes = infer_shapes(found)
    assert str(shapes.of(found.graph.inputs[0])) == "float[batch, x.1, 3]"
    assert str(shapes.of(found.graph.outputs[0])) == "float[batch, x.1, 3]"
    assert shapes.input_symbols == {"batch", "x.1"}
    assert shapes.data_symbols == frozenset()
    assert shapes.conflicts == ()


@pytest.mark.parametrize("name", ["?", "None", "", "-1", "unk"])
def test_a_name_that_means_unknown_ties_nothing_together(name: str) -> None:
    found = model(HEAD + "g (float[p] x, float[q] z) => (float[r] y) { y = Add(x, z) }")
    for value in found.graph.inputs:
        value.shape = ir.Shape([name])
    assert shape_text(found, "y") == "float[broadcast(x.0, z.0)]"


def test_unnamed_dimensions_stay_apart_from_named_ones() -> None:
    found = model(HEAD + "g (float[?, ?] x) => (float[a, b] y) { y = Relu(x) }")
    found.graph.inputs[0].shape = ir.Shape([None, "x.0"])
    assert shape_text(found, "y") == "float[x.0_, x.0]"


def test_expressions_in_inputs_are_understood() -> None:
    found = model(HEAD + "g (float[a] x, float[b] z) => (float[c] y) { y = Concat<axis=0>(x, z) }")
    found.graph.inputs[0].shape = ir.Shape(["past + seq"])
    found.graph.inputs[1].shape = ir.Shape(["batch-size"])
    assert shape_text(found, "y") == "float['batch-size' + past + seq]"


def test_shape_arithmetic_reaches_reshape() -> None:
    found = model(
        HEAD
        + """g (float[batch, seq, 768] x) => (float[a, b, c, d] y)
        <int64 zero = {0}, int64 one = {1}, int64[2] rest = {12, 64}, int64[1] at = {0}>
        {
            s = Shape(x)
            b = Gather(s, zero)
            t = Gather(s, one)
            b1 = Unsqueeze(b, at)
            t1 = Unsqueeze(t, at)
            target = Concat<axis=0>(b1, t1, rest)
            y = Reshape(x, target)
        }"""
    )
    assert shape_text(found, "y") == "float[batch, seq, 12, 64]"
    value = infer_shapes(found).of(named(found, "target")).value
    assert list(value) == [symbol("batch"), symbol("seq"), 12, 64]


def test_large_weights_are_never_read() -> None:
    class Untouchable(ir.Tensor):  # type: ignore[type-arg]
        def numpy(self) -> np.ndarray:  # type: ignore[type-arg]
            raise AssertionError("the data was touched")

    found = model(HEAD + "g (float[b, 2000] x) => (float[b, 2000] y) { y = Relu(x) }")
    weight = ir.Value(name="w")
    weight.const_value = Untouchable(np.zeros((2000, 4), np.float32), name="w")
    found.graph.register_initializer(weight)
    relu = found.graph.node(0)
    product = ir.Node("", "MatMul", [relu.outputs[0], weight], name="product")
    found.graph.append(product)
    assert str(infer_shapes(found).of(product.outputs[0])) == "float[b, 4]"


def test_an_initializer_that_callers_may_replace_is_not_known() -> None:
    text = (
        "g (float[6] x, int64[2] s) => (float[a, b] y) <int64[2] s = {2, 3}> { y = Reshape(x, s) }"
    )
    found = model(HEAD + text)
    assert shape_text(found, "y") == "float[y.0, y.1]"
    found.ir_version = 3  # no caller could, then
    assert shape_text(found, "y") == "float[2, 3]"


# Declarations


def declared(kind: str, body: str, inputs: str = "float[n, 4] x") -> ir.Model:
    return model(f"{HEAD}g ({inputs}) => ({kind} y) {{ {body} }}")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("int64[n, 4]", "y = Relu(x)"),
        ("float[n, 5]", "y = Relu(x)"),
        ("float[n]", "y = Relu(x)"),
        ("seq(float[n, 4])", "y = Relu(x)"),
        ("float[2]", "y = SequenceConstruct(x, x)"),
    ],
)
def test_a_declaration_that_lies_is_a_conflict(kind: str, body: str) -> None:
    found = declared(kind, body)
    shapes = infer_shapes(found)
    (conflict,) = shapes.conflicts
    assert conflict.value == "y"
    assert str(conflict.inferred) == str(shapes.of(found.graph.outputs[0]))


def test_an_impossible_size_is_a_conflict() -> None:
    found = declared("float[2]", "y = Concat<axis=0>(x, c)", "float[n] x, float[3] c")
    (conflict,) = infer_shapes(found).conflicts
    assert str(conflict.declared) == "float[2]"
    assert str(conflict.inferred) == "float[n + 3]"


@pytest.mark.parametrize(
    "kind", ["float[m, 4]", "float[n, 4]", "float[7, 4]", "float[?, ?]", "float[]"]
)
def test_a_declared_name_never_overrides_an_expression(kind: str) -> None:
    found = declared(kind, "y = Relu(x)")
    shapes = infer_shapes(found)
    assert shapes.conflicts == ()
    assert str(shapes.of(found.graph.outputs[0])) == "float[n, 4]"


def test_declarations_fill_what_the_graph_leaves_open() -> None:
    text = '<ir_version: 10, opset_import: ["": 21, "my": 1]>\n'
    text += "g (float[n] x) => (float[a, b] y) <float[m, 3] t> { t = my.Mystery(x) y = Relu(t) }"
    found = model(text)
    assert shape_text(found, "y") == "float[m, 3]"
    found = declared("int64[2, 5]", "y = NonZero(x)")
    assert shape_text(found, "y") == "int64[2, 5]"
    found = declared("int64[2, many]", "y = NonZero(x)")
    shapes = infer_shapes(found)
    assert str(shapes.of(found.graph.outputs[0])) == "int64[2, y.1]"
    assert shapes.data_symbols == {"y.1"}


def test_a_node_that_cannot_work_is_refused() -> None:
    found = declared("float[n]", "y = MatMul(x, x)", "float[2, 3] x")
    with pytest.raises(ShapeError, match="inner dimensions"):
        infer_shapes(found)


def test_write_back_survives_a_round_trip() -> None:
    found = model(
        HEAD
        + """g (float[batch, seq] x, seq(float[2]) s) => (float[a] y, float[c] z)
        { t = Concat<axis=1>(x, x) d = Shape(t) n = Size(t) f = Flatten<axis=0>(t)
          u = SequenceConstruct(t, t) z = NonZero(x) y = Relu(x) }"""
    )
    infer_shapes(found).write_back(found)
    again = ir.from_proto(ir.to_proto(found))
    assert list(named(again, "t").shape) == ["batch", "2*seq"]
    assert list(named(again, "f").shape) == [1, "2*batch*seq"]
    assert isinstance(named(again, "u").type, ir.SequenceType)
    assert list(named(again, "u").shape) == ["batch", "2*seq"]
    assert named(again, "z").dtype == ir.DataType.INT64
    assert list(named(again, "z").shape) == [2, "z.1"]
    onnx.checker.check_model(ir.to_proto(again), full_check=False)
    before, after = infer_shapes(found), infer_shapes(again)
    for name in ("t", "d", "n", "f", "u", "y", "z"):
        assert before.of(named(found, name)) == after.of(named(again, name))


def test_values_inside_an_unknown_operators_subgraph_are_unknown() -> None:
    text = """g (float[n] x) => (float[] y) {
        y = my.Repeat (x) <body = b (float[] v) => (float[] w) { w = Relu(v) }>
    }"""
    found = model('<ir_version: 10, opset_import: ["": 21, "my": 1]>\n' + text)
    shapes = infer_shapes(found)
    (body,) = found.graph.subgraphs()
    assert str(shapes.of(body.inputs[0])) == "?[...]"
    assert str(shapes.of(body.outputs[0])) == "?[...]"


def test_values_inside_functions_belong_to_their_callers() -> None:
    text = """g (float[n] x) => (float[] y) { y = my.f(x) }
    <domain: "my", opset_import: ["": 21]> f (v) => (w) { w = Relu(v) }"""
    found = model('<ir_version: 10, opset_import: ["": 21, "my": 1]>\n' + text)
    shapes = infer_shapes(found)
    (function,) = found.functions.values()
    with pytest.raises(KeyError):
        shapes.of(function.outputs[0])


def test_a_chain_of_twenty_thousand_nodes_needs_no_recursion() -> None:
    x = ir.Value(name="x", shape=ir.Shape(["n", 4]), type=ir.TensorType(ir.DataType.FLOAT))
    nodes, value = [], x
    for index in range(20_000):
        nodes.append(ir.Node("", "Relu", [value], name=f"n{index}"))
        value = nodes[-1].outputs[0]
    graph = ir.Graph([x], [value], nodes=nodes, opset_imports={"": 21}, name="chain")
    assert str(infer_shapes(ir.Model(graph, ir_version=10)).of(value)) == "float[n, 4]"


def test_a_chain_that_doubles_stays_small() -> None:
    x = ir.Value(name="x", shape=ir.Shape(["n", "m"]), type=ir.TensorType(ir.DataType.FLOAT))
    nodes, value = [], x
    for index in range(2_000):
        kind, attrs = ("Concat", [ir.AttrInt64("axis", 0)]) if index % 2 else ("Transpose", [])
        nodes.append(ir.Node("", kind, [value] * (2 if index % 2 else 1), attrs, name=f"n{index}"))
        value = nodes[-1].outputs[0]
    graph = ir.Graph([x], [value], nodes=nodes, opset_imports={"": 21}, name="doubling")
    facts = infer_shapes(ir.Model(graph, ir_version=10)).of(value)
    assert facts.shape is not None
    assert all(len(str(size)) < 200 for size in facts.shape)
